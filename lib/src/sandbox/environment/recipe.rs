//! From a task's [`Recipe`] to the commands that build its environment.
//!
//! SWE-rebench V2 runs each install command in a subshell of its own and ignores its failure, so exports and `cd` are
//! lost and a broken environment looks like a failing task. Here the whole list runs in one shell, and the first
//! failure is reported with its command.

use std::collections::BTreeMap;

use crate::sandbox::PATH;
use crate::task::{Recipe, SolverView};

/// Where the environment's own Python lies.
pub(super) const VENV: &str = "/opt/env";

/// What is run while the network is open.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// One bash script.
    pub(super) script: String,
    /// The environment of installation, agent and tests.
    pub(super) env: BTreeMap<String, String>,
}

/// Plans the installation. `toolchains` are the folders inside the sandbox whose `bin` precedes the system's.
pub(super) fn plan(task: &SolverView, toolchains: &[String], more: &BTreeMap<String, String>) -> Plan {
    let recipe = &task.recipe;
    let mut steps = Vec::new();
    let python = needs_python(task);
    if python {
        steps.extend(python_steps(recipe));
    }
    steps.extend(recipe.pre_install.iter().cloned());
    steps.extend(recipe.install.iter().cloned());
    if python && !recipe.pip_packages.is_empty() {
        // v1 installs the extra packages before the project's own command
        let own = recipe.pre_install.len() + recipe.install.len();
        let packages: Vec<String> = recipe.pip_packages.iter().map(|name| quote(name)).collect();
        steps.insert(steps.len() - own, format!("pip install {}", packages.join(" ")));
    }
    Plan { script: script(&steps, &warm_up(recipe)), env: environment(recipe, python, toolchains, more) }
}

/// A virtual environment is made where the recipe installs something for Python; a recipe without any installation
/// uses the base's own Python.
fn needs_python(task: &SolverView) -> bool {
    let recipe = &task.recipe;
    let installs = !recipe.install.is_empty() || !recipe.pip_packages.is_empty() || recipe.packages.is_some();
    let python = recipe.python.is_some()
        || task.language.as_deref() == Some("python")
        || recipe.log_parser.as_deref().is_some_and(|parser| parser.contains("pytest"));
    installs && python
}

fn python_steps(recipe: &Recipe) -> Vec<String> {
    let version: String =
        recipe.python.iter().flat_map(|v| v.chars()).filter(|c| c.is_ascii_digit() || *c == '.').collect();
    let wanted = if version.is_empty() { "python3".to_owned() } else { format!("python{version}") };
    let mut steps = vec![format!(
        "interpreter=$(command -v {wanted} || command -v python3) && \"$interpreter\" -m venv {VENV} && {{ [ \
         \"${{interpreter##*/}}\" = {wanted} ] || echo \"memtrial: {wanted} is not here, $($interpreter \
         --version) is used\"; }}"
    )];
    match recipe.packages.as_deref().map(str::trim) {
        Some("requirements.txt") => {
            let files = if recipe.reqs_path.is_empty() {
                vec!["requirements.txt".into()]
            } else {
                recipe.reqs_path.clone()
            };
            steps.extend(files.iter().map(|file| requirements(file)));
        }
        Some("environment.yml") => {
            let files = if recipe.env_yml_path.is_empty() {
                vec!["environment.yml".into()]
            } else {
                recipe.env_yml_path.clone()
            };
            steps.extend(files.first().map(|file| conda_environment(file)));
        }
        Some(names) if !names.is_empty() => {
            let names: Vec<String> =
                names.split_whitespace().map(|name| quote(&conda_to_pip(name))).collect();
            steps.push(format!("pip install {}", names.join(" ")));
        }
        _ => {}
    }
    steps
}

/// v1 drops the lines of a requirement file that install the project itself (`-e .`, `.`, `.[test]`) and constraint
/// files, then installs the rest.
fn requirements(file: &str) -> String {
    let file = quote(file);
    format!(
        "grep -vE '^[[:space:]]*(-e[[:space:]]+\\.|\\.(\\[|[[:space:]]*$)|-c|#)' {file} > {file}.memtrial || true; \
         pip install -r {file}.memtrial; rm -f {file}.memtrial"
    )
}

/// There is no conda in a sandbox: the pip packages of the file are installed, the others by their names without
/// conda's build strings; `python` itself is the virtual environment's.
fn conda_environment(file: &str) -> String {
    let file = quote(file);
    format!(
        "sed -nE 's/^[[:space:]]*-[[:space:]]+([A-Za-z0-9_.-]+)[[:space:]]*(([=<>!~]=?[^=#[:space:]]+).*)?$/\\1\\3/p' \
         {file} | grep -vE '^(pip|python|conda-forge|defaults|nodefaults)([=<>]|$)' | sed -E \
         's/^([A-Za-z0-9_.-]+)=([^=])/\\1==\\2/' > /tmp/packages.txt; pip install -r /tmp/packages.txt; rm -f \
         /tmp/packages.txt"
    )
}

/// `numpy=1.21` is conda's spelling of pip's `numpy==1.21`.
fn conda_to_pip(name: &str) -> String {
    match name.split_once('=') {
        Some((package, version))
            if !version.starts_with('=')
                && !package.ends_with(['<', '>', '!', '~'])
                && !version.is_empty() =>
        {
            format!("{package}=={}", version.split('=').next().unwrap_or(version))
        }
        _ => name.to_owned(),
    }
}

/// Compiles, without running a test, what a trial would otherwise compile again each time. It only fills caches: its
/// failure says nothing.
fn warm_up(recipe: &Recipe) -> Vec<String> {
    let tests = recipe.test_cmd.join("\n");
    let mut commands = Vec::new();
    if tests.contains("go test") {
        commands.push("go test -run '^$' ./...".to_owned());
    }
    if tests.contains("cargo test") {
        commands.push("cargo test --no-run".to_owned());
    }
    commands
}

fn environment(
    recipe: &Recipe,
    python: bool,
    toolchains: &[String],
    more: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut path: Vec<String> = Vec::new();
    if python {
        path.push(format!("{VENV}/bin"));
    }
    path.extend(toolchains.iter().map(|dir| format!("{dir}/bin")));
    path.extend(["/root/.cargo/bin".into(), "/root/go/bin".into(), PATH.into()]);
    let mut env: BTreeMap<String, String> = [
        ("PATH", path.join(":").as_str()),
        ("HOME", "/root"),
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "C.UTF-8"),
        ("TZ", "UTC"),
        ("PYTHONHASHSEED", "0"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("PIP_ROOT_USER_ACTION", "ignore"),
        ("PIP_PROGRESS_BAR", "off"),
        ("NPM_CONFIG_AUDIT", "false"),
        ("NPM_CONFIG_FUND", "false"),
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("PAGER", "cat"),
        ("MANPAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("TERM", "dumb"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    if python {
        env.insert("VIRTUAL_ENV".into(), VENV.into());
    }
    env.extend(more.clone());
    env.extend(recipe.env.clone());
    env
}

/// One shell for the whole list: a failing step ends it with the step's own exit code and a line that names it.
fn script(steps: &[String], warm_up: &[String]) -> String {
    let mut text = String::from("set -u\n");
    for (number, step) in steps.iter().enumerate() {
        let number = number + 1;
        text.push_str(&format!(
            "printf '+ %s\\n' {shown}\n{{ {step}\n}} || {{ code=$?; echo \"memtrial: install step {number} failed with exit \
             code $code\"; exit \"$code\"; }}\n",
            shown = quote(step.trim()),
        ));
    }
    for command in warm_up {
        text.push_str(&format!("( {command} ) > /dev/null 2>&1 || true\n"));
    }
    text
}

/// `text` as one word of a shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::InstanceId;

    fn task(recipe: Recipe, language: &str) -> SolverView {
        SolverView {
            instance_id: InstanceId::parse("acme__widget-7").unwrap(),
            repo: "acme/widget".into(),
            base_commit: "0".repeat(40),
            problem_statement: String::new(),
            language: Some(language.into()),
            image_name: None,
            version: None,
            recipe,
        }
    }

    fn bash(script: &str) -> (i32, String) {
        let output = std::process::Command::new("bash").args(["-c", script]).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    }

    #[test]
    fn one_shell_keeps_exports_and_folders() {
        let text = script(&["export WORD=kept".into(), "cd /tmp".into(), "echo $WORD $PWD".into()], &[]);
        let (code, output) = bash(&text);
        assert_eq!(code, 0);
        assert!(output.ends_with("kept /tmp\n"), "{output}");
    }

    #[test]
    fn the_first_failure_ends_the_installation_and_is_named() {
        let text =
            script(&["echo 'a'\\''b'".into(), "(exit 7)".into(), "echo never".into()], &["echo warm".into()]);
        let (code, output) = bash(&text);
        assert_eq!(code, 7);
        assert!(output.contains("install step 2 failed with exit code 7"), "{output}");
        assert!(!output.contains("never\n"));
    }

    #[test]
    fn a_failing_warm_up_says_nothing() {
        let (code, output) = bash(&script(&[], &["echo noise; exit 3".into()]));
        assert_eq!((code, output.as_str()), (0, ""));
    }

    #[test]
    fn version_one_keys_are_executed_in_order() {
        let recipe = Recipe {
            python: Some("3.9".into()),
            packages: Some("requirements.txt".into()),
            reqs_path: vec!["requirements/test.txt".into()],
            pip_packages: vec!["pytest==7.4".into()],
            pre_install: vec!["touch pre".into()],
            install: vec!["pip install -e .".into()],
            ..Recipe::default()
        };
        let script = plan(&task(recipe, "python"), &[], &BTreeMap::new()).script;
        let place = |text: &str| script.find(text).unwrap_or_else(|| panic!("{text} in {script}"));
        let order = ["python3.9", "requirements/test.txt", "pytest==7.4", "touch pre", "pip install -e ."];
        let places: Vec<usize> = order.iter().map(|text| place(text)).collect();
        assert!(places.is_sorted(), "{places:?} {script}");
    }

    #[test]
    fn requirement_files_lose_the_project_itself() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(
            dir.path().join("r.txt"),
            "# c\n-e .\n.[test]\n.\n-c cons.txt\nfoo==1\n-r other.txt\n",
        )
        .unwrap();
        let text = requirements("r.txt").replace("pip install -r", "cat");
        let (code, output) = bash(&format!("cd {} && {text}", dir.path().display()));
        assert_eq!((code, output.as_str()), (0, "foo==1\n-r other.txt\n"));
    }

    #[test]
    fn conda_names_become_pip_names() {
        assert_eq!(conda_to_pip("numpy=1.21"), "numpy==1.21");
        assert_eq!(conda_to_pip("numpy=1.21=py39_0"), "numpy==1.21");
        for same in ["numpy", "numpy==1.21", "numpy>=1.21", "numpy~=1.2"] {
            assert_eq!(conda_to_pip(same), same);
        }
        let dir = tempfile::tempdir().unwrap();
        let yml = "name: x\nchannels:\n  - conda-forge\ndependencies:\n  - python=3.9\n  - numpy=1.2\n  - scipy\n  - pip:\n    - foo>=2\n";
        std::fs::write(dir.path().join("e.yml"), yml).unwrap();
        let text = conda_environment("e.yml").replace("pip install -r", "cat");
        let (_, output) = bash(&format!("cd {} && {text}", dir.path().display()));
        assert_eq!(output, "numpy==1.2\nscipy\nfoo>=2\n");
    }

    #[test]
    fn a_recipe_without_installation_uses_the_base() {
        let recipe = Recipe { log_parser: Some("parse_log_pytest".into()), ..Recipe::default() };
        let plan = plan(&task(recipe, "python"), &["/opt/rust".into()], &BTreeMap::new());
        assert!(!plan.script.contains("venv"));
        assert!(plan.env["PATH"].starts_with("/opt/rust/bin:"));
    }
}
