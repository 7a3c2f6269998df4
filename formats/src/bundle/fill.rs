//! Which items fit. Every section gets its best item before any gets its second, so a small budget gives a small picture
//! of the whole and not the first section alone.

/// Decides for sections of items, given by their sizes in bytes, how many of each are kept. A section ends at its first
/// item that does not fit.
pub(super) fn kept(sections: &[Vec<usize>], bytes_max: usize) -> Vec<usize> {
    let mut kept = vec![0usize; sections.len()];
    let mut open = vec![true; sections.len()];
    let mut left = bytes_max;
    while open.iter().any(|open| *open) {
        for ((sizes, kept), open) in sections.iter().zip(&mut kept).zip(&mut open) {
            match sizes.get(*kept).filter(|size| *open && **size <= left) {
                Some(size) => {
                    left -= size;
                    *kept += 1;
                }
                None => *open = false,
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_gets_its_best_before_any_gets_a_second() {
        let sections = [vec![10, 10, 10], vec![10], vec![], vec![50, 1]];
        assert_eq!(kept(&sections, 20), [1, 1, 0, 0]);
        assert_eq!(kept(&sections, 45), [3, 1, 0, 0]);
        assert_eq!(kept(&sections, 91), [3, 1, 0, 2]);
        assert_eq!(kept(&sections, 0), [0, 0, 0, 0]);
    }
}
