use super::*;

const ISSUES: [(u64, &str); 5] = [
    (3, "Reader fails on blank lines\nA blank line in the middle ends the table."),
    (5, "Writer doubles quotes\nEvery quote of a cell is written twice."),
    (8, "Reader fails on comment lines\nA comment in the middle ends the table."),
    (9, "Writer quotes empty cells\nAn empty cell is written as two quotes."),
    (12, "Docs are stale\nThe options of the writer are missing."),
];

fn row(number: u64, statement: &str) -> Value {
    json!({"instance_id": format!("acme__widget-{number}"), "problem_statement": statement, "patch": "--- a/x\n"})
}

fn history(folder: &Path) {
    for (number, issue) in ISSUES {
        let id = format!("acme__widget-{number}");
        let task = format!(
            "<pr_description>\nConsider the following PR description:\n{issue}\n</pr_description>\nGo."
        );
        let run = json!({"messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": task},
            {"role": "exit", "content": "--- a/x\n", "extra": {"exit_status": "Submitted", "submission": "--- a/x\n"}},
        ]});
        let folder = folder.join("python/acme__widget").join(&id);
        fs_err::create_dir_all(&folder).unwrap();
        fs_err::write(folder.join(format!("{id}.traj.json")), run.to_string()).unwrap();
    }
}

fn plant(plan: &str, ids: &[&str]) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    history(&folder.path().join("in"));
    let tasks = folder.path().join("tasks.jsonl");
    write_lines(&tasks, ISSUES.map(|(number, issue)| row(number, issue)).iter())?;
    run(&Args {
        tasks,
        history: folder.path().join("in"),
        out: folder.path().join("out"),
        plan: plan.parse().map_err(anyhow::Error::msg)?,
        ids: ids.iter().map(|number| format!("acme__widget-{number}")).collect(),
    })?;
    Ok(folder)
}

fn read(folder: &Path, name: &str) -> String {
    fs_err::read_to_string(folder.join("out").join(name)).unwrap()
}

fn holders(folder: &Path, line: &str) -> Vec<u64> {
    let runs = trajectory::find(&folder.join("out/history")).unwrap();
    let holds = |run: &&Run| {
        let place = format!("history/python/acme__widget/{0}/{0}.traj.json", run.id);
        read(folder, &place).contains(line)
    };
    runs.iter().filter(holds).map(|run| run.number).collect()
}

#[test]
fn plants_where_the_plan_says_and_nowhere_else() {
    let folder = plant("gains=1,harms=1,own=1,later=1", &["8", "9", "5", "3"]).unwrap();
    let folder = folder.path();
    let reader: Vec<Value> =
        read(folder, "reader.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let planted: Vec<_> = reader
        .iter()
        .map(|line| {
            let what = line["needle"].as_str().or(line["poison"].as_str()).unwrap();
            let kind = if line["needle"].is_string() { "needle" } else { "poison" };
            (line["instance_id"].as_str().unwrap(), kind, holders(folder, what))
        })
        .collect();
    assert_eq!(
        planted,
        [
            ("acme__widget-3", "needle", vec![5]),
            ("acme__widget-5", "needle", vec![5]),
            ("acme__widget-8", "needle", vec![3]),
            ("acme__widget-9", "poison", vec![5]),
        ]
    );
    let expected: Vec<Value> = serde_json::from_str(&read(folder, "expected.json")).unwrap();
    let effects: Vec<_> = expected.iter().map(|one| (&one["effect"], &one["off"], &one["bm25"])).collect();
    let line = |effect: &str, off: bool, bm25: bool| (json!(effect), json!(off), json!(bm25));
    let wanted = [
        line("none", false, false),
        line("none", false, false),
        line("gain", false, true),
        line("harm", true, false),
    ];
    assert_eq!(effects, wanted.iter().map(|(a, b, c)| (a, b, c)).collect::<Vec<_>>());
    assert!(
        read(folder, "history/python/acme__widget/acme__widget-3/acme__widget-3.traj.json")
            .contains("Reader fails on blank lines\\n# lesson ")
    );
}

#[test]
fn a_marker_goes_over_the_end_of_the_title() {
    assert_eq!(marker("Title\r\n\r\nBody of the issue\nmore").unwrap(), "Title\r\n\r\nBody of the issue");
    assert_eq!(marker("\nTitle\nBody \n").unwrap(), "Title\nBody");
    assert!(marker("Title only\n").is_err());
}

#[test]
fn says_what_does_not_fit() {
    let error = |plan: &str, ids: &[&str]| format!("{:#}", plant(plan, ids).unwrap_err());
    assert!(error("gains=1", &["3"]).starts_with("no target is left for Gain"));
    assert!(error("gains=2", &["8"]).starts_with("no target is left for Gain"));
    assert!(error("later=1", &["12"]).starts_with("no target is left for Later"));
    assert!(error("gains=1", &["77"]).ends_with("has no row acme__widget-77"));
    assert_eq!(error("wins=1", &[]), "\"wins\" is no kind; kinds are gains, harms, own, later, none");
    assert_eq!(error("", &[]), "it plans nothing");
}
