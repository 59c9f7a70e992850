use super::*;

#[test]
fn a_folder_without_a_model_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = MiniLm::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("config.json") && error.contains("fetch-minilm.sh"), "{error}");
    fs_err::write(folder.path().join("config.json"), "{}").unwrap();
    let error = MiniLm::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("config.json cannot be used: missing field"), "{error}");
}

/// The first numbers of each text's vector, as plain arithmetic in 64 bits on the same weights gives them.
const KNOWN: [(&str, [f32; 5]); 4] = [
    ("Fix the parser of dates with a time zone", [0.02809, -0.001729, 0.075923, 0.005987, -0.030843]),
    ("The time zone of a parsed date is wrong", [0.021177, -0.0357, 0.054588, 0.007042, -0.032867]),
    ("Add a dark theme to the settings page", [0.012067, 0.044591, -0.026936, 0.053028, -0.024403]),
    ("", [-0.118838, 0.048299, -0.002548, -0.011011, 0.051951]),
];

/// With the model in the folder that MEMTRIAL_MINILM names.
#[tokio::test]
async fn the_real_model_gives_the_known_vectors() {
    let Some(folder) = std::env::var_os("MEMTRIAL_MINILM") else {
        eprintln!("skipped: MEMTRIAL_MINILM is not set");
        return;
    };
    let model = MiniLm::open(Path::new(&folder)).unwrap();
    let mut texts: Vec<String> = KNOWN.iter().map(|(text, _)| (*text).to_owned()).collect();
    // longer than the model sees, in several scripts
    texts.push(format!("{}ünïcödé 日本語 🎉 parseHTTPHeader2()", "word ".repeat(400)));
    let alone: Vec<_> = futures::future::join_all(
        texts
            .iter()
            .map(async |text| model.embed(std::slice::from_ref(text)).await.unwrap().vectors.remove(0)),
    )
    .await;
    let embedded = model.embed(&texts).await.unwrap();
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    for (alone, together) in alone.iter().zip(&embedded.vectors) {
        assert_eq!(together.len(), 384);
        assert!((dot(alone, together) - 1.0).abs() < 1e-5, "padding must not matter");
    }
    for ((text, known), vector) in KNOWN.iter().zip(&embedded.vectors) {
        for (known, got) in known.iter().zip(vector) {
            assert!((known - got).abs() < 2e-6, "{text:?}: {known} {got}");
        }
    }
    let [a, b, c, ..] = &embedded.vectors[..] else { panic!() };
    assert!((dot(a, b) - 0.8279).abs() < 1e-4 && (dot(a, c) - 0.029).abs() < 1e-4);
}
