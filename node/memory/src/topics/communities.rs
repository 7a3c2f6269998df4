//! Communities of a weighted graph by greedy modularity: the Louvain method of V. D. Blondel, J.-L. Guillaume,
//! R. Lambiotte and E. Lefebvre, "Fast unfolding of communities in large networks", J. Stat. Mech. (2008) P10008.
//!
//! In whole numbers, in a fixed order and without chance, so the same graph always gives the same communities. The
//! sweeps are bounded; each costs what the graph has links.

use std::collections::BTreeMap;

/// A bond between two nodes of the graph, by number; parallel ones add up, direction is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tie {
    /// One end.
    pub a: usize,
    /// The other end.
    pub b: usize,
    /// How strong.
    pub strength: u64,
}

/// Sweeps over all nodes before a level is taken as it is.
const SWEEPS_MAX: usize = 12;
/// Levels of communities of communities.
const LEVELS_MAX: usize = 8;

/// The number of the community of each node; communities are numbered by their first node. A node without ties is alone.
/// Ties with an unknown end, and those from a node to itself, are ignored.
pub fn communities(nodes: usize, ties: &[Tie]) -> Vec<usize> {
    let mut graph = Graph::of(nodes, ties.iter().filter(|tie| tie.a != tie.b));
    let mut of_node: Vec<usize> = (0..nodes).collect();
    for _ in 0..LEVELS_MAX {
        let (moved, count) = graph.grouped();
        if count == graph.loops.len() {
            break;
        }
        for community in &mut of_node {
            *community = moved.get(*community).copied().unwrap_or_default();
        }
        graph = graph.folded(&moved, count);
    }
    renumbered(&of_node).0
}

/// Neighbours of each node, and what lies inside each.
struct Graph {
    neighbours: Vec<Vec<(usize, u64)>>,
    loops: Vec<u64>,
}

impl Graph {
    fn of<'a>(nodes: usize, ties: impl Iterator<Item = &'a Tie>) -> Self {
        let mut rows: Vec<BTreeMap<usize, u64>> = vec![BTreeMap::new(); nodes];
        for tie in ties {
            if tie.a >= nodes || tie.b >= nodes || tie.strength == 0 {
                continue;
            }
            for (from, to) in [(tie.a, tie.b), (tie.b, tie.a)] {
                if let Some(row) = rows.get_mut(from) {
                    let sum = row.entry(to).or_insert(0);
                    *sum = sum.saturating_add(tie.strength);
                }
            }
        }
        Self {
            neighbours: rows.into_iter().map(|row| row.into_iter().collect()).collect(),
            loops: vec![0; nodes],
        }
    }

    /// Moves each node to the neighbouring community that gains most, until none moves. Gives the community of each node
    /// and how many there are.
    fn grouped(&self) -> (Vec<usize>, usize) {
        let mut state = Moves::start(self);
        for _ in 0..SWEEPS_MAX {
            let moved = (0..self.loops.len())
                .filter(|node| state.move_node(self, *node))
                .count();
            if moved == 0 {
                break;
            }
        }
        renumbered(&state.community)
    }

    /// One node for each community.
    fn folded(&self, community: &[usize], count: usize) -> Self {
        let of = |node: usize| community.get(node).copied().unwrap_or_default();
        let mut rows: Vec<BTreeMap<usize, u64>> = vec![BTreeMap::new(); count];
        let mut loops = vec![0_u64; count];
        for (node, (neighbours, inside)) in self.neighbours.iter().zip(&self.loops).enumerate() {
            let here = of(node);
            let mut within = *inside;
            for (other, weight) in neighbours {
                if of(*other) == here {
                    within = within.saturating_add(*weight);
                } else if let Some(row) = rows.get_mut(here) {
                    let sum = row.entry(of(*other)).or_insert(0);
                    *sum = sum.saturating_add(*weight);
                }
            }
            if let Some(sum) = loops.get_mut(here) {
                *sum = sum.saturating_add(within);
            }
        }
        Self {
            neighbours: rows.into_iter().map(|row| row.into_iter().collect()).collect(),
            loops,
        }
    }
}

/// Where everything stands while nodes move.
struct Moves {
    community: Vec<usize>,
    /// Sum of the degrees in each community.
    totals: Vec<u64>,
    degrees: Vec<u64>,
    /// Sum of all degrees.
    whole: u64,
}

impl Moves {
    fn start(graph: &Graph) -> Self {
        // What lies inside a node was counted from both of its ends.
        let degrees: Vec<u64> = graph
            .neighbours
            .iter()
            .zip(&graph.loops)
            .map(|(neighbours, inside)| {
                neighbours
                    .iter()
                    .fold(*inside, |sum, (_, weight)| sum.saturating_add(*weight))
            })
            .collect();
        Self {
            community: (0..degrees.len()).collect(),
            totals: degrees.clone(),
            whole: degrees.iter().fold(0, |sum, degree| sum.saturating_add(*degree)),
            degrees,
        }
    }

    /// Moves one node to where it gains most; ties go to where it is, then to the lower number.
    fn move_node(&mut self, graph: &Graph, node: usize) -> bool {
        let (Some(neighbours), Some(here), Some(degree)) = (
            graph.neighbours.get(node),
            self.community.get(node).copied(),
            self.degrees.get(node).copied(),
        ) else {
            return false;
        };
        let mut bonds: BTreeMap<usize, u64> = BTreeMap::from([(here, 0)]);
        for (other, weight) in neighbours {
            let there = self.community.get(*other).copied().unwrap_or_default();
            let sum = bonds.entry(there).or_insert(0);
            *sum = sum.saturating_add(*weight);
        }
        if let Some(total) = self.totals.get_mut(here) {
            *total = total.saturating_sub(degree);
        }
        // Gain of modularity, times the square of the whole.
        let gain = |community: usize, bond: u64| {
            let total = self.totals.get(community).copied().unwrap_or_default();
            let product = |a: u64, b: u64| i128::from(a).saturating_mul(i128::from(b));
            product(self.whole, bond).saturating_sub(product(degree, total))
        };
        let mut best = (gain(here, bonds.get(&here).copied().unwrap_or_default()), here);
        for (community, bond) in &bonds {
            let gained = gain(*community, *bond);
            if gained > best.0 {
                best = (gained, *community);
            }
        }
        if let Some(total) = self.totals.get_mut(best.1) {
            *total = total.saturating_add(degree);
        }
        if let Some(community) = self.community.get_mut(node) {
            *community = best.1;
        }
        best.1 != here
    }
}

/// The same communities, numbered by their first node, and how many there are.
fn renumbered(community: &[usize]) -> (Vec<usize>, usize) {
    let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
    let renamed = community
        .iter()
        .map(|old| {
            let next = numbers.len();
            *numbers.entry(*old).or_insert(next)
        })
        .collect();
    (renamed, numbers.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(nodes: usize, ties: &[(usize, usize, u64)], expect: &[usize]) {
        let ties: Vec<Tie> = ties
            .iter()
            .map(|(a, b, strength)| Tie {
                a: *a,
                b: *b,
                strength: *strength,
            })
            .collect();
        assert_eq!(communities(nodes, &ties), expect, "{ties:?}");
        let backwards: Vec<Tie> = ties
            .iter()
            .rev()
            .map(|tie| Tie {
                a: tie.b,
                b: tie.a,
                ..*tie
            })
            .collect();
        assert_eq!(
            communities(nodes, &backwards),
            expect,
            "the order of ties does not matter"
        );
    }

    #[test]
    fn two_groups_with_a_bridge_are_two_communities() {
        let groups = [
            (0, 1, 10),
            (1, 2, 10),
            (0, 2, 10),
            (3, 4, 10),
            (4, 5, 10),
            (3, 5, 10),
            (2, 3, 1),
        ];
        check(6, &groups, &[0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn strength_decides_where_a_node_between_two_groups_belongs() {
        let pairs = |left, right| [(0, 1, 9), (3, 4, 9), (1, 2, left), (2, 3, right)];
        check(5, &pairs(8, 1), &[0, 0, 0, 1, 1]);
        check(5, &pairs(1, 8), &[0, 0, 1, 1, 1]);
    }

    #[test]
    fn nodes_without_ties_are_alone_and_wrong_ties_are_ignored() {
        check(3, &[], &[0, 1, 2]);
        check(3, &[(0, 0, 5), (1, 9, 5), (1, 2, 0)], &[0, 1, 2]);
        check(0, &[], &[]);
    }

    #[test]
    fn a_long_ring_of_groups_keeps_its_groups() {
        // Ten groups of four, each tied to the next by one weak tie.
        let mut ties = Vec::new();
        for group in 0..10_usize {
            let first = group * 4;
            for (a, b) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
                ties.push((first + a, first + b, 100));
            }
            ties.push((first + 3, (first + 4) % 40, 1));
        }
        let expect: Vec<usize> = (0..40).map(|node| node / 4).collect();
        check(40, &ties, &expect);
    }

    #[test]
    fn huge_strengths_do_not_overflow() {
        let ties = [(0, 1, u64::MAX), (1, 2, u64::MAX), (2, 0, u64::MAX)];
        let found = communities(3, &ties.map(|(a, b, strength)| Tie { a, b, strength }));
        assert_eq!(found.len(), 3);
    }
}
