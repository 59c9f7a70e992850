//! What a study file may state: checked before anything is read or written.

use super::design::{Design, Solver, check_mounts};
use crate::llm::{Client, Endpoint, Limiter};
use crate::sandbox::environment::Base;
use crate::sandbox::images::is_host;

/// A number that is mistyped rather than meant.
const MOST_REPLICATES: u32 = 1000;

/// Names become folder names.
const LONGEST_NAME: usize = 64;

impl Design {
    /// What is wrong with the study, with the key that says so.
    pub(super) fn check(&self) -> Result<(), String> {
        self.check_grid()?;
        self.check_memory()?;
        self.check_sandbox()?;
        for (name, solver) in &self.solvers {
            check_solver(solver).map_err(|reason| format!("solvers.{name}: {reason}"))?;
        }
        for (key, value) in [("grade.timeout", self.grade.timeout), ("budget.jobs", self.budget.jobs as u64)]
        {
            if value == 0 {
                return Err(format!("{key}: at least 1"));
            }
        }
        self.check_program()?;
        for (name, condition) in &self.conditions {
            let checked = condition.check_ways(!self.agent.command.is_empty());
            checked.map_err(|reason| format!("conditions.{name}.{reason}"))?;
        }
        let cost = self.agent.cost_limit.unwrap_or(0.0);
        if !cost.is_finite() || cost < 0.0 {
            return Err(format!("agent.cost-limit: {cost} is no amount of US dollars"));
        }
        Ok(())
    }

    /// Another program as the agent asks an endpoint through a gateway.
    fn check_program(&self) -> Result<(), String> {
        if self.agent.program()?.is_none() {
            return Ok(());
        }
        if self.sandbox.backend == "local" {
            return Err("sandbox.backend: agent.command needs a sandbox with a network of its own: namespaces or docker".into());
        }
        let replays = |(_, solver): &(&String, &Solver)| matches!(solver, Solver::Replay { .. });
        match self.solvers.iter().find(replays) {
            Some((name, _)) => Err(format!("solvers.{name}: agent.command asks a model: a replay has none")),
            None => Ok(()),
        }
    }

    fn check_grid(&self) -> Result<(), String> {
        if self.name.trim().is_empty() {
            return Err("name: give the study a name".into());
        }
        if self.tasks.is_empty() {
            return Err("tasks: name at least one task file".into());
        }
        if self.replicates == 0 {
            return Err("replicates: at least 1".into());
        }
        if self.replicates > MOST_REPLICATES {
            return Err(format!("replicates: {} is more than {MOST_REPLICATES}", self.replicates));
        }
        if self.solvers.is_empty() {
            return Err("solvers: name at least one, as [solvers.NAME]".into());
        }
        if !self.conditions.contains_key(&self.baseline) {
            let known = self.conditions.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(format!("baseline: {:?} is no condition; there are: {known}", self.baseline));
        }
        for name in self.conditions.keys().chain(self.solvers.keys()) {
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
            if name.is_empty() || !plain || name.len() > LONGEST_NAME {
                return Err(format!(
                    "{name:?}: names of conditions and solvers hold letters, digits, - and _ only, {LONGEST_NAME} at most"
                ));
            }
        }
        Ok(())
    }

    fn check_memory(&self) -> Result<(), String> {
        for (name, endpoint) in &self.models {
            check_endpoint(endpoint).map_err(|reason| format!("models.{name}: {reason}"))?;
        }
        for (name, condition) in &self.conditions {
            let known = |what: &str, model: &Option<String>| match model {
                Some(model) if !self.models.contains_key(model) => {
                    Err(format!("conditions.{name}.{what}: there is no [models.{model}]"))
                }
                _ => Ok(()),
            };
            known("model", &condition.model)?;
            known("embedder", &condition.embedder)?;
            let Some(other) = &condition.matches else { continue };
            if !condition.inject.is_default() {
                return Err(format!(
                    "conditions.{name}.match: only what is injected at the start can be matched"
                ));
            }
            match self.conditions.get(other) {
                None => return Err(format!("conditions.{name}.match: {other:?} is no condition")),
                Some(other) if other.matches.is_some() => {
                    return Err(format!(
                        "conditions.{name}.match: that condition matches another one itself"
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn check_sandbox(&self) -> Result<(), String> {
        let sandbox = &self.sandbox;
        Base::parse(&sandbox.base)?;
        if let Some(registry) = sandbox.registry.as_ref().filter(|registry| !is_host(registry)) {
            return Err(format!("sandbox.registry: {registry:?} is no HOST or HOST:PORT"));
        }
        sandbox.limits.check().map_err(|reason| format!("sandbox.limits: {reason}"))?;
        if let Some(name) = sandbox.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(format!("sandbox.env: {name:?} is no name of a variable"));
        }
        check_mounts("sandbox.mounts", &sandbox.mounts)
    }
}

fn check_solver(solver: &Solver) -> Result<(), String> {
    match solver {
        Solver::Openai(endpoint) => check_endpoint(endpoint),
        Solver::Replay { .. } => Ok(()),
    }
}

fn check_endpoint(endpoint: &Endpoint) -> Result<(), String> {
    if endpoint.max_attempts == 0 {
        return Err("max-attempts: at least 1".into());
    }
    if endpoint.price.is_some_and(|price| !price.is_sane()) {
        return Err("price: US dollars per million tokens, 0 or more".into());
    }
    // the key may be missing while a finished study is only looked at
    let mut keyless = endpoint.clone();
    keyless.api_key_env = None;
    Client::sharing(keyless, &Limiter::default()).map(|_| ()).map_err(|error| error.to_string())
}
