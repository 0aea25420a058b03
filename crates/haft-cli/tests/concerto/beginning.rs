//! `haft init --concerto`: what it writes works as it is.

use std::fs;

use crate::kit::{folder, printed, say};

#[test]
fn a_project_checks_runs_offline_and_passes_its_tests() {
    let folder = folder(&[]);
    let out = printed(folder.path(), &["init", "--concerto", "shop"]);
    assert!(
        out.starts_with("wrote shop/Concerto.toml\nwrote shop/src/main.conc\n"),
        "{out}"
    );
    let manifest = fs::read_to_string(folder.path().join("shop/Concerto.toml")).unwrap();
    assert!(manifest.contains("name = \"shop\""), "{manifest}");
    assert_eq!(printed(folder.path(), &["check", "shop"]), "");
    let out = printed(folder.path(), &["run", "--mock", "shop"]);
    assert!(
        out.starts_with("[emit:answer] [mock response to: "),
        "{out}"
    );
    let out = printed(folder.path(), &["test", "shop"]);
    assert!(
        out.ends_with("test result: ok. 4 passed, 0 failed\n"),
        "{out}"
    );
    assert_eq!(printed(folder.path(), &["fmt", "--check", "shop"]), "");
    // Without a key it says which variable is missing.
    let out = printed(folder.path(), &["run", "shop"]);
    assert!(
        out.contains("environment variable OPENAI_API_KEY is not set"),
        "{out}"
    );
}

#[test]
fn nothing_that_is_there_is_written_over() {
    for name in ["Concerto.toml", "src/main.conc"] {
        let folder = folder(&[(name, "mine")]);
        let (code, out, aside) = say(folder.path(), &["init", "--concerto"]);
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(
            aside.contains(&format!("`{name}` is there already")),
            "{aside}"
        );
        let entries = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(entries, 1, "nothing else was written");
        assert_eq!(
            fs::read_to_string(folder.path().join(name)).unwrap(),
            "mine"
        );
    }
    let folder = folder(&[(".gitignore", "mine")]);
    printed(folder.path(), &["init", "--concerto", "."]);
    assert_eq!(
        fs::read_to_string(folder.path().join(".gitignore")).unwrap(),
        "mine"
    );
    let (code, ..) = say(folder.path(), &["init", "--concerto", "--force"]);
    assert_eq!(code, Some(2));
}

#[test]
fn programs_of_the_readme_and_the_guide_check_and_are_in_their_usual_form() {
    let readme = include_str!("../../../../README.md");
    let guide = include_str!("../../../../docs/guide-serve.md");
    let blocks = [readme, guide].into_iter().flat_map(|text| {
        let blocks = text.split("```concerto\n").skip(1);
        blocks.map(|block| block.split("```").next().unwrap())
    });
    let blocks: Vec<&str> = blocks.collect();
    assert!(blocks.len() > 1, "{blocks:?}");
    for block in blocks {
        let manifest = "[project]\nname = \"p\"\n[connections.assistant]\nprovider = \"mock\"\n";
        let folder = folder(&[("Concerto.toml", manifest), ("app.conc", block)]);
        assert_eq!(printed(folder.path(), &["check", "app.conc"]), "");
        assert_eq!(printed(folder.path(), &["fmt", "--check"]), "", "{block}");
    }
}
