use super::*;

fn layer(yaml: &str) -> Layer {
    Layer::from_yaml("test.yaml", yaml).unwrap()
}

const MINIMAL: &str = "agent: {system_template: s, instance_template: '{{task}}'}";

#[test]
fn the_embedded_default_is_whole_and_free_of_warnings() {
    let Loaded { config, warnings } = Config::load::<&str>(&[]).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!((config.mode.clone(), config.limits.steps, config.limits.cost_usd), (Mode::Tools, 250, 3.0));
    assert_eq!((config.command_timeout, config.limits.format_errors), (60, 3));
    assert!(
        config.templates.instance.contains("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt")
    );
    assert_eq!(Config::load(&["memtrial"]).unwrap().config, config);
}

#[test]
fn layers_merge_objects_and_replace_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("base.yaml");
    std::fs::write(
        &path,
        format!("{MINIMAL}\nenvironment: {{env: {{A: '1', B: '2'}}, interpreter: [sh, -c]}}"),
    )
    .unwrap();
    // The suffix is forced: `base.v2` names base.yaml.
    let spec = folder.path().join("base.v2").display().to_string();
    let loaded = Config::load(&[
        spec.as_str(),
        "environment.env.B=three",
        "environment.interpreter=[\"bash\", \"-c\"]",
        "agent.step_limit=7",
        "agent.cost_limit=\"0.5\"",
        "model.model_kwargs.temperature=0",
    ])
    .unwrap();
    let config = loaded.config;
    assert_eq!(config.env, BTreeMap::from([("A".into(), "1".into()), ("B".into(), "three".into())]));
    assert_eq!(config.interpreter, ["bash", "-c"]);
    assert_eq!((config.limits.steps, config.limits.cost_usd), (7, 0.5));
    assert_eq!(config.model["model_kwargs"], json!({"temperature": 0}));
    assert_eq!(config.limits.wall_seconds, 0);
}

#[test]
fn what_has_no_effect_is_warned_about() {
    let loaded = Config::from_layers(&[
        layer(MINIMAL),
        layer(
            "agent: {max_iterations: 50}\nenvironment: {run_args: [--network, none], forward_env: [HOME]}\n\
             model: {action_regex: x, model_class: gpt}\nextra: 1\nrun: {other: 2}",
        ),
    ])
    .unwrap();
    insta::assert_snapshot!(loaded.warnings.join("\n"), @r"
    unknown key extra: it has no effect
    unknown key agent.max_iterations: it has no effect
    unknown key run.other: it has no effect
    environment.forward_env has no effect: sandboxes get no variables of the host
    environment.run_args has no effect: limits and network are the study's
    model.action_regex has no effect: the model class uses tool calls
    unknown model.model_class gpt: taken for one with tool calls
    ");
}

#[test]
fn model_classes_and_old_keys_choose_the_mode() {
    let text = |yaml: &str| Config::from_layers(&[layer(MINIMAL), layer(yaml)]).unwrap().config;
    let mode = text("model: {model_class: openrouter_textbased}").mode;
    assert_eq!(mode, Mode::Text { action_regex: r"```mswea_bash_command\s*\n(.*?)\n```".into() });
    assert_eq!(text("model: {model_class: portkey}").mode, Mode::Tools);
    let import = "model: {model_class: a.b.LitellmTextbasedModel, action_regex: '<c>(.*?)</c>'}";
    assert_eq!(text(import).mode, Mode::Text { action_regex: "<c>(.*?)</c>".into() });

    let v1 = text(
        "agent:\n  action_observation_template: '{{output.output}}'\n  format_error_template: none\n  \
         timeout_template: slow\n",
    );
    assert_eq!(
        (v1.dialect, &v1.mode),
        (Dialect::V1, &Mode::Text { action_regex: keys::V1_ACTION_REGEX.into() })
    );
    assert_eq!(
        (v1.templates.observation.as_str(), v1.templates.timeout.as_deref()),
        ("{{output.output}}", Some("slow"))
    );
}

#[test]
fn what_is_wrong_is_named() {
    let error = |yaml: &str| Config::from_layers(&[layer(MINIMAL), layer(yaml)]).unwrap_err().to_string();
    insta::assert_snapshot!([
        Config::load(&["agent.step_limit=5"]).unwrap_err().to_string(),
        Config::load(&["a..b=1"]).unwrap_err().to_string(),
        error("agent: {step_limit: many}"),
        error("agent: {step_limit: 1.5}"),
        error("agent: {cost_limit: -1}"),
        error("agent: [1]"),
        error("environment: {env: {A: 1}}"),
        error("environment: {interpreter: []}"),
        error("environment: {timeout: 0}"),
        error("model: {observation_template: '{% if %}'}"),
        error("model: {model_class: litellm_textbased, action_regex: '(a)(b)'}"),
        error("model: {model_class: litellm_textbased, action_regex: '('}").lines().next().unwrap().to_owned(),
        Layer::from_yaml("x.yaml", "- 1").unwrap_err().to_string(),
    ].join("\n"), @r#"
    agent configuration: agent.system_template is missing; an override alone has no templates: give `-c memtrial` or a file before it
    agent configuration override "a..b=1" has an empty key; write it as agent.step_limit=50
    agent configuration: agent.step_limit must be a number that is not negative, not "many"
    agent configuration: agent.step_limit must be a whole number, not 1.5
    agent configuration: agent.cost_limit must be a number that is not negative, not -1
    agent configuration: section `agent` must be a mapping with keys such as `agent`, `environment` and `model`
    agent configuration: environment.env must be a mapping of strings (quote numbers and `off`), not {"A":1}
    agent configuration: environment.interpreter must be a list of at least one string, not []
    agent configuration: environment.timeout must be at least 1, not 0
    agent configuration: the template model.observation_template cannot be rendered: syntax error: unexpected end of block (line 1)
    agent configuration: model.action_regex "(a)(b)": it has 2 groups; at most one may capture the command
    agent configuration: model.action_regex "(": regex parse error:
    agent configuration: x.yaml must be a mapping with keys such as `agent`, `environment` and `model`
    "#);
    let missing = Config::load(&["/nowhere/at-all.yaml"]).unwrap_err().to_string();
    assert!(missing.starts_with("agent configuration /nowhere/at-all.yaml: "), "{missing}");
    let broken = Layer::from_yaml("x.yaml", "a: [").unwrap_err().to_string();
    assert!(broken.starts_with("agent configuration x.yaml is not valid YAML: "), "{broken}");
}
