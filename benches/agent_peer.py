"""What mini-swe-agent itself costs: no model, no commands, the trajectory saved at each step.

Usage: agent_peer.py STEPS    (under a Python that has mini-swe-agent 2)
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

folder = tempfile.mkdtemp()
os.environ |= {"MSWEA_SILENT_STARTUP": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "MSWEA_GLOBAL_CONFIG_DIR": folder}

import litellm  # noqa: E402
import yaml  # noqa: E402
from minisweagent.agents.default import DefaultAgent  # noqa: E402
from minisweagent.config import builtin_config_dir  # noqa: E402
from minisweagent.environments.local import LocalEnvironment  # noqa: E402
from minisweagent.models.litellm_model import LitellmModel  # noqa: E402

STEPS = int(sys.argv[1])
DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


class Instantly(LitellmModel):
    asked = 0

    def _query(self, messages, **kwargs):
        self.asked += 1
        command = "true" if self.asked < STEPS else f"echo {DONE}"
        call = {"id": f"call_{self.asked}", "type": "function",
                "function": {"name": "bash", "arguments": json.dumps({"command": command})}}
        message = {"role": "assistant", "content": "I look at the next file.", "tool_calls": [call]}
        usage = {"prompt_tokens": 100 * self.asked, "completion_tokens": 20, "total_tokens": 100 * self.asked + 20}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return litellm.ModelResponse(id="r", created=1, model="null", choices=[choice], usage=usage)

    def _calculate_cost(self, response):
        return {"cost": 0.0}


class Null(LocalEnvironment):
    def execute(self, action, cwd="", *, timeout=None):
        submits = DONE in action["command"]
        output = {"output": f"{DONE}\n" if submits else "", "returncode": 0, "exception_info": ""}
        self._check_finished(output)
        return output


config = yaml.safe_load((builtin_config_dir / "benchmarks/swebench.yaml").read_text())
texts = {key: config["agent"][key] for key in ("system_template", "instance_template")}
templates = {key: config["model"][key] for key in ("observation_template", "format_error_template")}
model = Instantly(model_name="null", **templates)
agent = DefaultAgent(model, Null(), cost_limit=0, output_path=Path(folder, "run.traj.json"), **texts)
before = time.process_time()
agent.run("x should be 2")
used = time.process_time() - before
report = {"agent": "mini-swe-agent", "runs": 1, "steps": agent.n_calls, "cpu_ms_per_step": used * 1e3 / agent.n_calls}
print(json.dumps(report))
