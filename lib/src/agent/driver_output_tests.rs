use super::super::SENTINEL;
use super::super::fakes::calling;
use super::tests::{Still, World, repository, script};
use super::*;
use crate::context::Full;

#[tokio::test]
async fn a_document_lies_beside_the_trajectory_where_it_is_asked_for() {
    let document = |world: &World| std::fs::read(world.folder.path().join("acme__widget-7.atif.json"));
    let mut world = World::new("");
    world.format = TrajectoryFormat::Both;
    world
        .run(
            &script(&[calling(&["true"]), calling(&[&format!("echo {SENTINEL}")])]),
            &mut repository().await,
            &Still,
        )
        .await
        .unwrap();
    let written: Value = serde_json::from_slice(&document(&world).unwrap()).unwrap();
    assert_eq!(
        (&written["agent"]["name"], written["steps"].as_array().unwrap().len()),
        (&json!("memtrial"), 4)
    );
    let world = World::new("");
    world
        .run(&script(&[calling(&[&format!("echo {SENTINEL}")])]), &mut repository().await, &Still)
        .await
        .unwrap();
    assert!(document(&world).is_err());
}

#[tokio::test]
async fn each_call_shows_what_the_log_held_before_it() {
    let world = World::new("");
    let model = script(&[
        calling(&["true"]),
        json!({"content": "hm"}),
        calling(&["echo a", "echo b"]),
        calling(&[&format!("echo {SENTINEL}")]),
    ]);
    world.run(&model, &mut repository().await, &Still).await.unwrap();
    let log = world.trajectory()["messages"].as_array().unwrap().clone();
    let requests = model.requests.lock().unwrap();
    assert_eq!(requests.len(), 4);
    for (request, before) in requests.iter().zip(context::asked_at(&log)) {
        assert_eq!(request.messages, Full::default().view(&log[..before], &[]).unwrap().messages);
    }
}
