# Writes the environment of the image's commands to a file, each variable ended by NUL: `activate.sh FILE`. Where there is
# a conda environment `testbed`, as in SWE-bench's images, it is activated as its harness does.
for root in /opt/miniconda3 /opt/conda /opt/miniforge3 /opt/mambaforge /root/miniconda3; do
  if [ -d "$root/envs/testbed" ] && [ -f "$root/bin/activate" ]; then
    . "$root/bin/activate" && conda activate testbed || exit 3
    break
  fi
done
env -0 >"$1"
