//! Shows what an edit changes: the lines that went and came, with a few round them. An edit is at one place, so what the
//! texts have in common at both ends is all that has to be found, in one pass.

const CONTEXT: usize = 2;

/// The changed lines with `-` and `+`; nothing when the texts are the same.
pub(crate) fn lines(before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let most = old.len().min(new.len()) - head;
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(most)
        .take_while(|(old, new)| old == new)
        .count();
    let slice = |lines: &[&str], from: usize, to: usize, sign: char| {
        lines
            .get(from..to)
            .unwrap_or_default()
            .iter()
            .map(|line| format!("{sign}{line}\n"))
            .collect::<String>()
    };
    let from = head.saturating_sub(CONTEXT);
    let to = (old.len() - tail + CONTEXT).min(old.len());
    format!(
        "@@ line {} @@\n{}{}{}{}",
        head + 1,
        slice(&old, from, head, ' '),
        slice(&old, head, old.len() - tail, '-'),
        slice(&new, head, new.len() - tail, '+'),
        slice(&old, old.len() - tail, to, ' '),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_shown() {
        assert_eq!(lines("a\n", "a\n"), "");
        assert_eq!(
            lines("1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\nx\ny\n5\n6\n7\n"),
            "@@ line 4 @@\n 2\n 3\n-4\n+x\n+y\n 5\n 6\n"
        );
        assert_eq!(lines("", "a\n"), "@@ line 1 @@\n+a\n");
        assert_eq!(lines("a\na\n", "a\n"), "@@ line 2 @@\n a\n-a\n");
    }
}
