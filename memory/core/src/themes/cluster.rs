//! Groups vectors by their directions. Themes begin where many vectors lie close together; each vector goes to the nearest
//! theme, and each theme moves to the mean of its vectors, a few times (spherical k-means). Near themes are then joined to
//! groups by the mean of their vectors. Earlier themes are kept where they still fit, so that little changes when
//! something was said since. The same input gives the same result.

use std::collections::BTreeMap;

use crate::recall::dot;

/// Most themes of one place.
const MAX_THEMES: usize = 64;

/// Fewest memories of a theme.
pub(super) const MIN_MEMBERS: usize = 3;

/// Vectors among which new themes are looked for.
const SAMPLE: usize = 512;

/// Cosine similarity, about the mean of all, from which two memories are neighbours.
const NEIGHBOURS: f32 = 0.35;

/// Least cosine similarity of a memory to the centre of its theme, about the mean of all.
const NEAR: f32 = 0.3;

/// Cosine similarity of centres from which two themes are one.
const SAME: f32 = 0.8;

/// Least mean cosine similarity of the themes of a group.
const JOINED: f32 = 0.2;

/// Most rounds of moving centres.
const ROUNDS: usize = 8;

/// Fewest vectors whose mean is taken off. Few vectors have no common direction worth speaking of.
const MIN_CENTRED: usize = 64;

/// A memory's place among the themes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    /// Number of its theme.
    pub(super) theme: u16,
    /// Number of the group that the theme belongs to.
    pub(super) group: u16,
    /// Cosine similarity to the centre of the theme, from 0 to 200.
    pub(super) closeness: u8,
}

/// Groups unit vectors. `before` says to which themes they belonged. Returns the place of each; `None` for one that fits no
/// theme.
pub(super) fn cluster(vectors: &[Vec<f32>], before: &[Option<u16>]) -> Vec<Option<Member>> {
    let vectors = centred(vectors);
    let mut centres = means(&vectors, before);
    let wanted = ((vectors.len() as f32 / 2.0).sqrt().ceil() as usize).min(MAX_THEMES);
    add_dense(&vectors, &mut centres, wanted);
    let mut places: Vec<Option<(u16, f32)>> = Vec::new();
    for _ in 0..ROUNDS {
        let next: Vec<Option<(u16, f32)>> = vectors.iter().map(|vector| nearest(vector, &centres)).collect();
        let is_settled = next.len() == places.len() && next.iter().zip(&places).all(|(a, b)| theme(a) == theme(b));
        places = next;
        let themes: Vec<Option<u16>> = places.iter().map(theme).collect();
        let sizes = sizes(&themes);
        let next_centres = means(&vectors, &themes);
        let lasting = joined_alike(next_centres, &sizes);
        if is_settled && lasting.len() == centres.len() {
            break;
        }
        centres = lasting;
    }
    let sizes = lasting_sizes(&vectors, &mut centres);
    let groups = groups(&centres, &sizes);
    vectors
        .iter()
        .map(|vector| {
            let (theme, cosine) = nearest(vector, &centres)?;
            let closeness = (cosine.clamp(0.0, 1.0) * 200.0) as u8;
            Some(Member { theme, group: groups.get(&theme).copied().unwrap_or(theme), closeness })
        })
        .collect()
}

/// Removes themes that are too small until none is left, and returns the sizes of the others. The memories of a removed theme
/// may fit another one.
fn lasting_sizes(vectors: &[Vec<f32>], centres: &mut BTreeMap<u16, Vec<f32>>) -> BTreeMap<u16, usize> {
    loop {
        let themes: Vec<Option<u16>> = vectors.iter().map(|vector| theme(&nearest(vector, centres))).collect();
        let sizes = sizes(&themes);
        let before = centres.len();
        centres.retain(|number, _| sizes.get(number).is_some_and(|size| *size >= MIN_MEMBERS));
        if centres.len() == before {
            return sizes;
        }
    }
}

fn theme(place: &Option<(u16, f32)>) -> Option<u16> {
    place.map(|(theme, _)| theme)
}

fn sizes(themes: &[Option<u16>]) -> BTreeMap<u16, usize> {
    let mut sizes = BTreeMap::new();
    for theme in themes.iter().flatten() {
        *sizes.entry(*theme).or_default() += 1;
    }
    sizes
}

/// Takes off what all vectors have in common, so that directions say what sets them apart.
fn centred(vectors: &[Vec<f32>]) -> Vec<Vec<f32>> {
    if vectors.len() < MIN_CENTRED {
        return vectors.to_vec();
    }
    let mut mean = vec![0.0; vectors.first().map_or(0, Vec::len)];
    for vector in vectors {
        add(&mut mean, vector);
    }
    mean.iter_mut().for_each(|value| *value /= vectors.len() as f32);
    let apart = |vector: &Vec<f32>| unit(vector.iter().zip(&mean).map(|(value, mean)| value - mean).collect());
    vectors.iter().map(apart).collect()
}

/// Returns the centre of each theme that has a vector.
fn means(vectors: &[Vec<f32>], themes: &[Option<u16>]) -> BTreeMap<u16, Vec<f32>> {
    let mut sums: BTreeMap<u16, Vec<f32>> = BTreeMap::new();
    for (vector, theme) in vectors.iter().zip(themes) {
        let Some(theme) = theme else { continue };
        add(sums.entry(*theme).or_insert_with(|| vec![0.0; vector.len()]), vector);
    }
    sums.into_iter().map(|(number, sum)| (number, unit(sum))).collect()
}

/// Adds themes where many vectors of a sample lie close together and apart from the themes there are.
fn add_dense(vectors: &[Vec<f32>], centres: &mut BTreeMap<u16, Vec<f32>>, wanted: usize) {
    let step = vectors.len().div_ceil(SAMPLE).max(1);
    // The newest come last, and are always in the sample.
    let sample: Vec<&Vec<f32>> = vectors.iter().rev().step_by(step).collect();
    let is_free = |vector: &Vec<f32>| centres.values().all(|centre| dot(vector, centre) < NEAR);
    let mut free: Vec<bool> = sample.iter().map(|vector| is_free(vector)).collect();
    let neighbours = neighbours(&sample);
    let fewest = if step == 1 { MIN_MEMBERS } else { MIN_MEMBERS - 1 };
    while centres.len() < wanted {
        let dense = |one: &usize| neighbours[*one].iter().filter(|other| free[**other]).count();
        // The first of equals: the newest one.
        let best = (0..sample.len()).rev().filter(|one| free[*one]).max_by_key(dense);
        let Some(best) = best.filter(|best| dense(best) >= fewest) else { break };
        let Some(number) = (0..u16::MAX).find(|number| !centres.contains_key(number)) else { break };
        let mut centre = vec![0.0; sample[best].len()];
        for near in neighbours[best].iter().filter(|near| free[**near]) {
            add(&mut centre, sample[*near]);
        }
        let centre = unit(centre);
        for (free, vector) in free.iter_mut().zip(&sample) {
            *free &= dot(vector, &centre) < NEIGHBOURS;
        }
        free[best] = false;
        centres.insert(number, centre);
    }
}

/// Returns for each vector the numbers of those close to it, itself among them.
fn neighbours(sample: &[&Vec<f32>]) -> Vec<Vec<usize>> {
    let mut neighbours: Vec<Vec<usize>> = (0..sample.len()).map(|one| vec![one]).collect();
    for one in 0..sample.len() {
        for other in one + 1..sample.len() {
            if dot(sample[one], sample[other]) >= NEIGHBOURS {
                neighbours[one].push(other);
                neighbours[other].push(one);
            }
        }
    }
    neighbours
}

fn nearest(vector: &[f32], centres: &BTreeMap<u16, Vec<f32>>) -> Option<(u16, f32)> {
    let near = centres.iter().map(|(number, centre)| (*number, dot(vector, centre)));
    near.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).filter(|(_, cosine)| *cosine >= NEAR)
}

/// Joins themes with the same centre: the larger one stays.
fn joined_alike(centres: BTreeMap<u16, Vec<f32>>, sizes: &BTreeMap<u16, usize>) -> BTreeMap<u16, Vec<f32>> {
    let mut order: Vec<(u16, Vec<f32>)> = centres.into_iter().collect();
    order.sort_by_key(|(number, _)| (std::cmp::Reverse(sizes.get(number).copied()), *number));
    let mut lasting: Vec<(u16, Vec<f32>)> = Vec::with_capacity(order.len());
    for (number, centre) in order {
        if lasting.iter().all(|(_, other)| dot(other, &centre) < SAME) {
            lasting.push((number, centre));
        }
    }
    lasting.into_iter().collect()
}

/// Joins the nearest themes again and again, by the mean cosine similarity of their centres. Returns the group of each
/// theme. A group has the number of its largest theme.
fn groups(centres: &BTreeMap<u16, Vec<f32>>, sizes: &BTreeMap<u16, usize>) -> BTreeMap<u16, u16> {
    let mut groups: Vec<Vec<u16>> = centres.keys().map(|number| vec![*number]).collect();
    let between = |one: &[u16], other: &[u16]| {
        let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
        let cosines: Vec<f32> = pairs.filter_map(|(a, b)| Some(dot(centres.get(a)?, centres.get(b)?))).collect();
        cosines.iter().sum::<f32>() / cosines.len().max(1) as f32
    };
    loop {
        let pairs = (0..groups.len()).flat_map(|one| (one + 1..groups.len()).map(move |other| (one, other)));
        let best = pairs.map(|(one, other)| (between(&groups[one], &groups[other]), one, other));
        let best = best.max_by(|a, b| a.0.total_cmp(&b.0).then((b.1, b.2).cmp(&(a.1, a.2))));
        let Some((_, one, other)) = best.filter(|(cosine, ..)| *cosine >= JOINED) else { break };
        let joined = groups.remove(other);
        groups[one].extend(joined);
    }
    let largest = |group: &[u16]| {
        group.iter().copied().max_by_key(|number| (sizes.get(number).copied(), std::cmp::Reverse(*number)))
    };
    let named = |group: Vec<u16>| {
        let name = largest(&group).unwrap_or_default();
        group.into_iter().map(move |theme| (theme, name))
    };
    groups.into_iter().flat_map(named).collect()
}

fn add(sum: &mut [f32], vector: &[f32]) {
    sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = dot(&vector, &vector).sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|value| *value /= length);
    }
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a unit vector near one of the axes; the number moves it a little.
    fn near_axis(axis: usize, number: usize) -> Vec<f32> {
        let mut vector = vec![0.0; 16];
        vector[axis] = 1.0;
        vector[8 + number % 8] = 0.3;
        unit(vector)
    }

    fn of(axes: &[usize]) -> Vec<Vec<f32>> {
        axes.iter().enumerate().map(|(number, axis)| near_axis(*axis, number)).collect()
    }

    fn themes(places: &[Option<Member>]) -> Vec<Option<u16>> {
        places.iter().map(|place| place.map(|member| member.theme)).collect()
    }

    #[test]
    fn vectors_of_one_direction_are_one_theme_and_a_lone_one_is_none() {
        let places = cluster(&of(&[0, 1, 0, 1, 0, 1, 5]), &[None; 7]);
        let found = themes(&places);
        assert_eq!((found[0], found[1]), (found[2], found[3]));
        assert_eq!((found[0], found[1]), (found[4], found[5]));
        assert_ne!(found[0], found[1]);
        assert_eq!(found[6], None, "two more would make it a theme");
    }

    #[test]
    fn themes_keep_their_numbers_when_something_is_said_since() {
        let first = themes(&cluster(&of(&[0, 1, 0, 1, 0, 1]), &[None; 6]));
        let more = of(&[0, 1, 0, 1, 0, 1, 2, 2, 2, 0]);
        let before: Vec<Option<u16>> = first.iter().copied().chain([None; 4]).collect();
        let then = themes(&cluster(&more, &before));
        assert_eq!(&then[..6], &first[..]);
        assert_eq!(then[9], first[0]);
        assert!(then[6].is_some() && !first.contains(&then[6]), "a new matter is a new theme: {then:?}");
        assert_eq!(themes(&cluster(&more, &then)), then, "nothing changes without anything new");
    }

    #[test]
    fn near_themes_are_one_group() {
        let between = |one: usize, other: usize, number: usize| {
            let (one, other) = (near_axis(one, number), near_axis(other, number));
            unit(one.iter().zip(&other).map(|(a, b)| a + 0.45 * b).collect())
        };
        let vectors: Vec<Vec<f32>> = (0..9)
            .map(|number| match number % 3 {
                0 => between(0, 1, number),
                1 => between(1, 0, number),
                _ => near_axis(4, number),
            })
            .collect();
        let places = cluster(&vectors, &[None; 9]);
        let group = |number: usize| places[number].map(|member| member.group);
        assert_eq!(group(0), group(1));
        assert_ne!(group(0), group(2));
        assert!(places.iter().flatten().all(|member| places.iter().flatten().any(|other| other.theme == member.group)));
    }

    #[test]
    fn nothing_makes_no_theme() {
        assert!(cluster(&[], &[]).is_empty());
        assert_eq!(cluster(&of(&[0, 1]), &[None, Some(7)]), [None, None]);
    }
}
