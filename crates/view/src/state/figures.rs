//! What follows from a profile, the span and the filter. Worked out once: walking about changes none of them.

use std::sync::Arc;

use mpiprobe_model::{
    Profile,
    analyse::{Change, Look, RankId, identify},
    filter::{Filter, Kept, apply},
};
use mpiprobe_report::present::{FindingText, findings};

use super::Data;
use crate::{
    content::Span,
    screens::{Rows, TableData},
};

#[derive(Debug, Default)]
pub(super) struct Figures {
    /// What they were made of.
    basis: Option<Basis>,
    pub change: Change,
    pub ids: Vec<RankId>,
    pub findings: Vec<FindingText>,
    /// What the filter keeps.
    kept: Option<Part>,
}

#[derive(Debug)]
struct Basis {
    profile: Arc<Profile>,
    since: Option<Arc<Look>>,
    filter: Option<Filter>,
}

#[derive(Debug)]
struct Part {
    profile: Profile,
    change: Change,
    ids: Vec<RankId>,
}

impl Figures {
    /// Works them out anew if what they are made of is not the same any more.
    pub(super) fn renew(&mut self, data: &Data, span: Span, filter: Option<&Filter>) {
        let Some(profile) = data.profile() else {
            *self = Self::default();
            return;
        };
        let since = data.since(span);
        let is_same = self.basis.as_ref().map(|basis| basis.is(profile, since));
        if is_same != Some(true) {
            self.change = Change::since(since.map(Arc::as_ref), profile);
            self.ids = identify(&profile.ranks).collect();
            self.findings = findings(profile);
        }
        if is_same != Some(true) || self.basis.as_ref().is_none_or(|basis| basis.filter.as_ref() != filter) {
            self.kept = filter.map(|filter| self.part(apply(filter, profile)));
        }
        self.basis = Some(Basis { profile: Arc::clone(profile), since: since.cloned(), filter: filter.cloned() });
    }

    /// The same rows of what has changed.
    fn part(&self, kept: Kept) -> Part {
        let (mut ranks, mut ids) = (Vec::new(), Vec::new());
        for (rank, functions) in &kept.places {
            let Some(((change, all), id)) = self.change.ranks.get(*rank).zip(self.ids.get(*rank)) else { continue };
            ranks.push((*change, functions.iter().filter_map(|&function| all.get(function).copied()).collect()));
            ids.push(*id);
        }
        Part {
            profile: kept.profile,
            change: Change { ranks, span_ns: self.change.span_ns, waits: self.change.waits.clone() },
            ids,
        }
    }

    /// What tables are made of; `None` before the first profile.
    pub(super) fn data(&self, span: Span) -> Option<TableData<'_>> {
        let Basis { profile, filter, .. } = self.basis.as_ref()?;
        let all = Rows { profile, change: &self.change, ids: &self.ids };
        let kept = self.kept.as_ref().map(|part| Rows { profile: &part.profile, change: &part.change, ids: &part.ids });
        Some(TableData::new(kept.unwrap_or(all), all, span, filter.as_ref()))
    }
}

impl Basis {
    /// The filter aside.
    fn is(&self, profile: &Arc<Profile>, since: Option<&Arc<Look>>) -> bool {
        Arc::ptr_eq(&self.profile, profile)
            && match (&self.since, since) {
                (Some(data), Some(since)) => Arc::ptr_eq(data, since),
                (None, None) => true,
                _ => false,
            }
    }
}
