//! A folder of what a system learnt from a whole history, one shelf a repository, from which any target is served.
//!
//! ```text
//! INDEX/index.json          the system, its settings, the order, and the runs taken in (ids, digests, outcomes, dates)
//! INDEX/<owner__name>.jsonl what each run taught (see `shelf`)
//! INDEX/frozen.json         digests of the files, once `freeze` was asked for
//! ```
//!
//! A target gets a store that is made of its own eligible runs: the causal rule is applied to the listed runs as it is to
//! a history's. Building again takes in only what is new; a build that was killed goes on where it stood.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::host::{Experiences, Host, Setup};
use super::registry::NameOnly;
use super::shelf::{Shelf, identity};
use super::{Description, Experience, LearnsFrom, MemoryError, Resources, open};
use crate::dataset::{Chronology, DatasetError, History, HistoryStore, MergeDates, refusal};
use crate::llm::Cost;
use crate::task::InstanceId;
use crate::trajectory::write_atomic;

const FORMAT: &str = "memtrial-index-1";

/// What an index was made with, and of which runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    format: String,
    /// The system's name.
    pub system: String,
    /// Its settings.
    pub settings: Value,
    /// Its own description, with the model and the embedder that it was built with.
    pub about: Description,
    /// What "earlier" means.
    pub chronology: Chronology,
    /// The runs of each repository, in their order.
    pub repos: BTreeMap<String, Vec<Run>>,
}

/// A run that was taken in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its task.
    pub id: InstanceId,
    /// Hex SHA-256 of its trajectory.
    pub sha256: String,
    /// Whether it was resolved, where known.
    pub resolved: Option<bool>,
    /// When its task was merged, where known.
    pub merged_at: Option<String>,
}

/// An open index.
#[derive(Debug, Clone)]
pub struct Index {
    folder: PathBuf,
    manifest: Manifest,
}

/// What one repository came to while an index was built.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Built {
    /// `owner__name`.
    pub repo: String,
    /// Runs in the index.
    pub runs: usize,
    /// Runs that were taken in now; the others stood in the index already.
    pub new: usize,
    /// Records in the store of all runs.
    pub records: u64,
    /// Bytes of text in it.
    pub bytes: u64,
    /// Runs from which nothing could be kept because a model's replies were unusable.
    pub unusable: u64,
    /// What it cost.
    pub cost: Cost,
}

/// What an index is to be built of.
#[derive(Clone)]
pub struct Plan<'a> {
    /// The system's name.
    pub system: &'a str,
    /// Its settings.
    pub settings: &'a Value,
    /// What it may use.
    pub resources: &'a Resources,
    /// The earlier runs.
    pub store: &'a HistoryStore,
    /// What "earlier" means.
    pub chronology: Chronology,
    /// When tasks were merged.
    pub dates: &'a MergeDates,
}

impl Index {
    /// Builds an index, or takes what is new into the one that is there. `on` hears of each repository when it is done.
    ///
    /// # Errors
    /// Where the folder holds an index of another system, settings or order, or a frozen one; where a run cannot be read or
    /// the system fails (what was taken in before stays).
    pub async fn build(
        folder: &Path,
        plan: Plan<'_>,
        on: &mut (dyn FnMut(&Built) + Send),
    ) -> Result<Self, MemoryError> {
        let about = open(plan.system, plan.settings, plan.resources)?.describe();
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            system: plan.system.to_owned(),
            settings: plan.settings.clone(),
            about: about.clone(),
            chronology: plan.chronology,
            repos: BTreeMap::new(),
        };
        let mut index = Self { folder: folder.to_owned(), manifest };
        if about.learns_from != LearnsFrom::History || !about.ingests {
            return Err(index.broken(&format!("{} learns nothing from a history", plan.system)));
        }
        fs_err::create_dir_all(folder).map_err(|error| index.broken(&error))?;
        if index.manifest_path().exists() {
            let there = Self::open(folder)?;
            if there.frozen_path().exists() {
                return Err(index.broken(&"the index is frozen; build another one"));
            }
            index.manifest.repos = there.manifest.repos.clone();
            if there.manifest != index.manifest {
                let reason =
                    "it was built with another system, other settings or in another order; build another one";
                return Err(index.broken(&reason));
            }
        }
        let repos: BTreeSet<String> = plan.store.ids().map(|id| id.repo_key().to_ascii_lowercase()).collect();
        for repo in &repos {
            let built = index.take_in(repo, &plan, &about).await?;
            on(&built);
        }
        Ok(index)
    }

    async fn take_in(
        &mut self,
        repo: &str,
        plan: &Plan<'_>,
        about: &Description,
    ) -> Result<Built, MemoryError> {
        let history = History::for_next_task(plan.store, repo, plan.chronology, plan.dates)
            .map_err(|error| self.broken(&error))?;
        let mut shelf = Shelf::open(&self.shelf_path(repo), identity(about, plan.settings))?;
        let before = shelf.len();
        let system = open(plan.system, plan.settings, plan.resources)?;
        let host = Host::build_on(&mut shelf, system, &history, Setup::plain(Default::default())).await?;
        let mut runs = Vec::new();
        for entry in history.entries() {
            let sha256 = entry.sha256().map_err(|error: DatasetError| self.broken(&error))?;
            let merged_at = plan.dates.merged_at(entry.id()).map(str::to_owned);
            runs.push(Run { id: entry.id().clone(), sha256, resolved: entry.resolved(), merged_at });
        }
        let store = host.store();
        let built = Built {
            repo: repo.to_owned(),
            runs: runs.len(),
            new: shelf.len() - before,
            records: store.records,
            bytes: store.bytes,
            unusable: store.unusable,
            cost: host.build_cost(),
        };
        self.manifest.repos.insert(repo.to_owned(), runs);
        self.write_json(&self.manifest_path(), &self.manifest)?;
        Ok(built)
    }

    /// Opens an index; a frozen one is checked against its digests.
    ///
    /// # Errors
    /// Where the folder holds no index that memtrial reads, or a frozen one was changed.
    pub fn open(folder: &Path) -> Result<Self, MemoryError> {
        let path = folder.join("index.json");
        let fail = |reason: String| MemoryError::Index { path: path.clone(), reason };
        let text = fs_err::read_to_string(&path).map_err(|error| fail(error.to_string()))?;
        let manifest: Manifest = serde_json::from_str(&text).map_err(|error| fail(error.to_string()))?;
        if manifest.format != FORMAT {
            return Err(fail(format!("its format is {:?}; memtrial reads {FORMAT:?}", manifest.format)));
        }
        let index = Self { folder: folder.to_owned(), manifest };
        if index.frozen_path().exists() {
            let text = fs_err::read_to_string(index.frozen_path()).map_err(|error| index.broken(&error))?;
            let frozen: BTreeMap<String, String> =
                serde_json::from_str(&text).map_err(|error| index.broken(&error))?;
            if frozen != index.digests()? {
                return Err(index.broken(&"the index was frozen and is not what it was"));
            }
        }
        Ok(index)
    }

    /// What it was made with.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Whether nothing may be added any more.
    pub fn is_frozen(&self) -> bool {
        self.frozen_path().exists()
    }

    /// Ends writing, and returns the digest of each file.
    ///
    /// # Errors
    /// When the files cannot be read or the digests not be written.
    pub fn freeze(&self) -> Result<BTreeMap<String, String>, MemoryError> {
        let digests = self.digests()?;
        self.write_json(&self.frozen_path(), &digests)?;
        Ok(digests)
    }

    /// The store of one target: made of the runs that it may learn from, and of nothing else.
    ///
    /// # Errors
    /// Where the index holds a run that it cannot take back, or needs a merge date of the target that is not known.
    pub async fn host(
        &self,
        target: &InstanceId,
        merged_at: Option<&str>,
        resources: &Resources,
        setup: Setup,
    ) -> Result<Host, MemoryError> {
        self.host_of(self.eligible(target, merged_at)?, resources, setup).await
    }

    /// The store of all runs of a repository: of whoever works on it today.
    ///
    /// # Errors
    /// As [`host`](Self::host); and where the index holds no run of the repository.
    pub async fn host_of_repo(
        &self,
        repo_key: &str,
        resources: &Resources,
        setup: Setup,
    ) -> Result<Host, MemoryError> {
        let repo = repo_key.to_ascii_lowercase();
        let runs = self.manifest.repos.get(&repo).filter(|runs| !runs.is_empty());
        let runs = runs.ok_or_else(|| self.broken(&format!("it holds no run of {repo_key}")))?.clone();
        let next = runs.iter().map(|run| run.id.number()).max().unwrap_or(0).saturating_add(1);
        let target = InstanceId::parse(&format!("{repo}-{next}")).map_err(|error| self.broken(&error))?;
        self.host_of(Eligible { target, runs }, resources, setup).await
    }

    fn eligible(&self, target: &InstanceId, merged_at: Option<&str>) -> Result<Eligible, MemoryError> {
        let repo = target.repo_key().to_ascii_lowercase();
        let runs = self.manifest.repos.get(&repo).map(Vec::as_slice).unwrap_or_default();
        let mut dates = MergeDates::default();
        for run in runs {
            if let Some(merged_at) = &run.merged_at {
                dates.add(&run.id, merged_at);
            }
        }
        if let Some(merged_at) = merged_at {
            dates.add(target, merged_at);
        }
        let chronology = self.manifest.chronology;
        if chronology == Chronology::MergedAt && dates.merged_at(target).is_none() {
            return Err(self.broken(&DatasetError::Undated { id: target.to_string() }));
        }
        let runs = runs.iter().filter(|run| refusal(&run.id, target, chronology, &dates).is_none());
        Ok(Eligible { target: target.clone(), runs: runs.cloned().collect() })
    }

    async fn host_of(
        &self,
        eligible: Eligible,
        resources: &Resources,
        setup: Setup,
    ) -> Result<Host, MemoryError> {
        let Manifest { system, settings, about, .. } = &self.manifest;
        let mut resources = resources.clone();
        if let (Some(model), None) = (&about.model, &resources.model) {
            resources.model = Some(Arc::new(NameOnly(model.clone())));
        }
        if let (Some(embedder), None) = (&about.embedder, &resources.embedder) {
            resources.embedder = Some(Arc::new(NameOnly(embedder.clone())));
        }
        let opened = open(system, settings, &resources)?;
        let now = opened.describe();
        if (&now.embedder, &now.model) != (&about.embedder, &about.model) {
            let given =
                |about: &Description| format!("model {:?}, embedder {:?}", about.model, about.embedder);
            return Err(self.broken(&format!(
                "it was built with {}, and is opened with {}",
                given(about),
                given(&now)
            )));
        }
        let repo = eligible.target.repo_key().to_ascii_lowercase();
        let path = self.shelf_path(&repo);
        if eligible.runs.is_empty() && !path.exists() {
            return Host::build_from(opened, &eligible, setup, None).await;
        }
        let mut shelf = Shelf::open(&path, identity(about, settings))?;
        Host::build_from(opened, &eligible, setup, Some(&mut shelf)).await
    }

    fn digests(&self) -> Result<BTreeMap<String, String>, MemoryError> {
        let names = self.manifest.repos.keys().map(|repo| format!("{repo}.jsonl"));
        let mut digests = BTreeMap::new();
        for name in names.chain(["index.json".to_owned()]) {
            let content = fs_err::read(self.folder.join(&name)).map_err(|error| self.broken(&error))?;
            digests.insert(name, format!("{:x}", Sha256::digest(&content)));
        }
        Ok(digests)
    }

    fn manifest_path(&self) -> PathBuf {
        self.folder.join("index.json")
    }

    fn frozen_path(&self) -> PathBuf {
        self.folder.join("frozen.json")
    }

    fn shelf_path(&self, repo: &str) -> PathBuf {
        self.folder.join(format!("{repo}.jsonl"))
    }

    fn write_json<T: Serialize>(&self, path: &Path, value: &T) -> Result<(), MemoryError> {
        let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| self.broken(&error))?;
        bytes.push(b'\n');
        write_atomic(path, &bytes).map_err(|error| self.broken(&error))
    }

    fn broken(&self, reason: &dyn std::fmt::Display) -> MemoryError {
        MemoryError::Index { path: self.folder.clone(), reason: reason.to_string() }
    }
}

/// The runs of an index that one target may learn from.
struct Eligible {
    target: InstanceId,
    runs: Vec<Run>,
}

impl Experiences for Eligible {
    fn target(&self) -> &InstanceId {
        &self.target
    }

    fn eligible(&self) -> Vec<InstanceId> {
        self.runs.iter().map(|run| run.id.clone()).collect()
    }

    fn read(&self, id: &InstanceId, _with_events: bool) -> Result<Experience, String> {
        Err(format!("the index does not hold what {id} taught after just these runs; build it again"))
    }

    fn digest(&self, id: &InstanceId) -> Result<(String, Option<bool>), String> {
        let run = self.runs.iter().find(|run| run.id == *id).ok_or_else(|| format!("no run of {id}"))?;
        Ok((run.sha256.clone(), run.resolved))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::host::Outcome;
    use crate::memory::tests::{Scripted, query_of};
    use crate::memory::{Budget, Query};

    fn write_run(folder: &Path, id: &str, issue: &str) {
        let patch = format!("--- a/m.py\n+++ b/m.py\n@@ -1 +1,2 @@\n a\n+{}(1)\n", issue.replace(' ', "_"));
        let run = json!({"messages": [
            {"role": "user", "content": format!("<pr_description>\n{issue}\n</pr_description>")},
            {"role": "exit", "content": patch, "extra": {"exit_status": "Submitted", "submission": patch}},
        ]});
        fs_err::write(folder.join(format!("{id}.traj.json")), run.to_string()).unwrap();
    }

    fn plan<'a>(
        store: &'a HistoryStore,
        system: &'a str,
        resources: &'a Resources,
        dates: &'a MergeDates,
    ) -> Plan<'a> {
        Plan { system, settings: &Value::Null, resources, store, chronology: Chronology::Number, dates }
    }

    async fn sources(index: &Index, target: &str, text: &str, resources: &Resources) -> Vec<u64> {
        let setup = Setup::plain(Budget { records: 9, tokens: 4000 });
        let target_id = InstanceId::parse(target).unwrap();
        let mut host = index.host(&target_id, None, resources, setup).await.unwrap();
        let query: Query = query_of(target, text);
        match host.retrieve(&query).await.unwrap().outcome {
            Outcome::Injected(injection) => injection.sources.iter().map(InstanceId::number).collect(),
            Outcome::Abstained { .. } => Vec::new(),
        }
    }

    #[tokio::test]
    async fn serves_each_target_its_own_past_and_takes_in_what_is_new() {
        let folder = tempfile::tempdir().unwrap();
        let (history, place) = (folder.path().join("runs"), folder.path().join("index"));
        fs_err::create_dir(&history).unwrap();
        for (id, issue) in [("a__b-3", "reader fails"), ("a__b-7", "reader breaks"), ("c__d-1", "reader")] {
            write_run(&history, id, issue);
        }
        let (resources, dates) = (Resources::default(), MergeDates::default());
        let mut told = Vec::new();
        let store = HistoryStore::open(&history).unwrap();
        let mut on = |built: &Built| told.push((built.repo.clone(), built.runs, built.new));
        let index = Index::build(&place, plan(&store, "bm25", &resources, &dates), &mut on).await.unwrap();
        assert_eq!(told, [("a__b".to_owned(), 2, 2), ("c__d".to_owned(), 1, 1)]);
        assert_eq!(sources(&index, "a__b-9", "reader", &resources).await, [3, 7]);
        assert_eq!(sources(&index, "A__B-7", "reader", &resources).await, [3]);
        assert_eq!(sources(&index, "a__b-3", "reader", &resources).await, Vec::<u64>::new());
        assert_eq!(sources(&index, "x__y-3", "reader", &resources).await, Vec::<u64>::new());
        write_run(&history, "a__b-5", "reader anew");
        let store = HistoryStore::open(&history).unwrap();
        let mut told = Vec::new();
        let mut on = |built: &Built| told.push((built.runs, built.new));
        Index::build(&place, plan(&store, "bm25", &resources, &dates), &mut on).await.unwrap();
        assert_eq!(told, [(3, 1), (1, 0)]);
        let index = Index::open(&place).unwrap();
        assert_eq!(sources(&index, "a__b-6", "reader", &resources).await, [3, 5]);
        let other = Index::build(&place, plan(&store, "fixcard", &resources, &dates), &mut |_| {}).await;
        assert!(other.unwrap_err().to_string().contains("another system"));
        index.freeze().unwrap();
        let more = Index::build(&place, plan(&store, "bm25", &resources, &dates), &mut |_| {}).await;
        assert!(more.unwrap_err().to_string().contains("frozen"));
        Index::open(&place).unwrap();
        fs_err::write(place.join("c__d.jsonl"), "").unwrap();
        assert!(Index::open(&place).unwrap_err().to_string().contains("is not what it was"));
    }

    #[tokio::test]
    async fn a_page_is_served_as_it_was_after_the_targets_own_past() {
        let folder = tempfile::tempdir().unwrap();
        let (history, place) = (folder.path().join("runs"), folder.path().join("index"));
        fs_err::create_dir(&history).unwrap();
        for number in [1, 2, 3] {
            write_run(&history, &format!("a__b-{number}"), "reader");
        }
        let store = HistoryStore::open(&history).unwrap();
        let notes =
            ["after one", "after two", "after three"].map(|notes| json!({"notes": notes}).to_string());
        let model = Scripted::new(notes.to_vec());
        let (resources, dates) =
            (Resources { model: Some(model.clone()), ..Resources::default() }, MergeDates::default());
        let index =
            Index::build(&place, plan(&store, "repo-notes", &resources, &dates), &mut |_| {}).await.unwrap();
        for (target, page, runs) in [("a__b-2", "after one", vec![1]), ("a__b-3", "after two", vec![1, 2])] {
            let target_id = InstanceId::parse(target).unwrap();
            let setup = Setup::plain(Budget::default());
            let mut host = index.host(&target_id, None, &resources, setup).await.unwrap();
            let Outcome::Injected(injection) = host.retrieve(&query_of(target, "q")).await.unwrap().outcome
            else {
                panic!("abstained")
            };
            assert!(injection.block.contains(page), "{}", injection.block);
            assert_eq!(injection.sources.iter().map(InstanceId::number).collect::<Vec<_>>(), runs);
        }
        // every run was asked about once
        assert_eq!(model.asked(), 3);
        // to read, the model's name is enough; another one is refused
        let target = InstanceId::parse("a__b-2").unwrap();
        let setup = || Setup::plain(Budget::default());
        assert!(index.host(&target, None, &Resources::default(), setup()).await.is_ok());
        let other = Resources { model: Some(Arc::new(NameOnly("other".into()))), ..Resources::default() };
        let error = index.host(&target, None, &other, setup()).await.err().unwrap().to_string();
        assert!(error.contains("it was built with model Some(\"scripted\")"), "{error}");
    }
}
