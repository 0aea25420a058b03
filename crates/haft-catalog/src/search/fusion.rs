//! Several rankings as one, by rank alone (`tool-selection.md` §5).

use super::rankers::Ranked;

/// How little the first ranks differ.
const K: f64 = 60.0;

/// A ranking, and how much its word counts.
pub(super) struct Voter<'a> {
    pub(super) ranking: &'a [Ranked],
    pub(super) weight: f64,
}

/// A tool and its score between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fused {
    pub(super) position: u32,
    pub(super) score: f64,
}

/// One ranking of all, the best first; ties keep the order of the list. The score is divided by the
/// largest that could be reached.
pub(super) fn fused(voters: &[Voter<'_>]) -> Vec<Fused> {
    let reachable: f64 = voters.iter().map(|voter| voter.weight / (K + 1.0)).sum();
    let mut counted: Vec<(u32, f64)> = Vec::new();
    for voter in voters {
        let ranks = std::iter::successors(Some(K + 1.0), |rank| Some(rank + 1.0));
        let voted = voter.ranking.iter().zip(ranks);
        counted.extend(voted.map(|(ranked, rank)| (ranked.position, voter.weight / rank)));
    }
    // Stable: the votes for one tool are added in the order of the voters.
    counted.sort_by_key(|&(position, _)| position);
    let tools = counted.chunk_by(|(one, _), (other, _)| one == other);
    let mut fused: Vec<Fused> = tools
        .filter_map(|counted| {
            let score: f64 = counted.iter().map(|(_, vote)| vote).sum();
            let &(position, _) = counted.first()?;
            (score > 0.0).then_some(Fused {
                position,
                score: score / reachable,
            })
        })
        .collect();
    fused.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then(one.position.cmp(&other.position))
    });
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(positions: &[u32]) -> Vec<Ranked> {
        let ranked = |&position: &u32| Ranked {
            position,
            score: 1.0,
        };
        positions.iter().map(ranked).collect()
    }

    #[test]
    fn the_first_of_all_rankings_has_1_and_ties_keep_the_order_of_the_list() {
        let (one, two) = (ranking(&[3, 1, 2]), ranking(&[3, 2, 1]));
        let voters = [&one, &two].map(|ranking| Voter {
            ranking,
            weight: 1.0,
        });
        let fused = fused(&voters);
        assert_eq!(
            fused.iter().map(|it| it.position).collect::<Vec<_>>(),
            [3, 1, 2]
        );
        assert!((fused[0].score - 1.0).abs() < 1e-12);
        assert!((fused[1].score - fused[2].score).abs() < 1e-12);
    }

    #[test]
    fn a_ranking_without_weight_changes_nothing() {
        let (one, two) = (ranking(&[0, 1]), ranking(&[7, 8]));
        let alone = fused(&[Voter {
            ranking: &one,
            weight: 1.0,
        }]);
        let with = fused(&[
            Voter {
                ranking: &one,
                weight: 1.0,
            },
            Voter {
                ranking: &two,
                weight: 0.0,
            },
        ]);
        assert_eq!(alone, with);
    }
}
