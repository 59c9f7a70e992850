//! What is asked in place of a long issue, and how several answers become one.

use std::collections::BTreeMap;

use super::mapping::Hit;
use crate::memory::tokenize;

/// The first `most` different words of a text that tell something: longer than three letters, no stop words.
pub(super) fn words(text: &str, most: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let plain = |c: char| !(c.is_alphanumeric() || c == '_');
    for word in text.split(plain).filter(|word| word.chars().count() > 3) {
        let word = word.to_lowercase();
        if found.len() == most {
            break;
        }
        if !word.chars().all(|c| c.is_ascii_digit())
            && !tokenize::is_stop_word(&word)
            && !found.contains(&word)
        {
            found.push(word);
        }
    }
    found
}

/// Several lists as one: a hit is worth 1/(1+n) in each list of n hits that holds it, so that rare words count more.
/// One list stays as the server sorted it.
pub(super) fn merge(mut lists: Vec<Vec<Hit>>) -> Vec<Hit> {
    if lists.len() == 1 {
        return lists.remove(0);
    }
    let mut merged: BTreeMap<String, Hit> = BTreeMap::new();
    for list in lists {
        let worth = 1.0 / (1.0 + list.len() as f64);
        let mut seen = std::collections::BTreeSet::new();
        for hit in list.into_iter().filter(|hit| seen.insert(hit.id.clone())) {
            let known = merged.entry(hit.id.clone()).or_insert(Hit { score: Some(0.0), ..hit });
            known.score = known.score.map(|score| score + worth);
        }
    }
    let mut hits: Vec<Hit> = merged.into_values().collect();
    hits.sort_by(|a, b| b.score.unwrap_or_default().total_cmp(&a.score.unwrap_or_default()));
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_first_that_tell_something() {
        let text =
            "QuerySet.in_bulk() does not work for unique_together: in_bulk 1234 instead of these Fields";
        assert_eq!(words(text, 4), ["queryset", "in_bulk", "work", "unique_together"]);
        assert_eq!(words("the and of", 5), Vec::<String>::new());
    }

    #[test]
    fn rare_words_count_more() {
        let hit = |id: &str| Hit { id: id.into(), text: None, score: Some(9.0) };
        let merged = merge(vec![vec![hit("a"), hit("b"), hit("b"), hit("c")], vec![hit("b")], vec![]]);
        let told: Vec<_> = merged.iter().map(|hit| (hit.id.as_str(), hit.score.unwrap())).collect();
        assert_eq!(told, [("b", 0.2 + 0.5), ("a", 0.2), ("c", 0.2)]);
        assert_eq!(merge(vec![vec![hit("z"), hit("a")]])[0].id, "z", "one list keeps its order");
    }
}
