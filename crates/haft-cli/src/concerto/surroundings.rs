//! What a program is given: what it may reach, how much it may use, who answers for its models.

use std::path::Path;
use std::sync::Arc;

use haft_concerto::host::{EmitFormat, Entries, Setup};
use haft_concerto::manifest;
use haft_concerto::natives::{Grant, GrantedBy, Permissions};
use haft_concerto::vm::Limits;
use haft_mcp::{Pool, Questions};

use super::diagnostics;
use super::project::{Models, Project};
use crate::arguments::{EVERYTHING, LimitArguments, PermissionArguments};
use crate::failure::Failure;
use crate::mcp::{connect_options, pool_of};

/// What a program is given, and what has to be ended after it.
pub(crate) struct Surroundings {
    pub(crate) setup: Setup,
    /// The servers of `haft.toml`.
    pool: Option<Pool>,
}

impl Surroundings {
    /// What a project's program is given.
    pub(crate) fn of(
        project: &Project,
        models: Models,
        permissions: &PermissionArguments,
        limits: LimitArguments,
    ) -> Result<Self, Failure> {
        let is_mocked = models == Models::Mocked;
        let beside = &project.beside;
        let pool = if is_mocked || beside.mcp.is_empty() {
            None
        } else {
            let (pool, unusable) = pool_of(&beside.mcp, None, Questions::Refused)?;
            for (_, error) in unusable {
                diagnostics::warn(&error.to_string());
            }
            Some(pool)
        };
        let setup = Setup {
            manifest: project.manifest.clone(),
            permissions: self::permissions(project, permissions),
            limits: self::limits(limits),
            mock: is_mocked,
            models: Some(Arc::new(Entries::new(beside.models.clone()))),
            servers: pool.clone(),
            connect: connect_options(Questions::Refused),
            options: beside.loop_options.clone(),
            warn: Arc::new(diagnostics::warn),
            ..Setup::default()
        };
        Ok(Self { setup, pool })
    }

    /// With emits in this form.
    pub(crate) fn emits(mut self, emits: EmitFormat) -> Self {
        self.setup.emits = emits;
        self
    }

    /// Ends what was started for it.
    pub(crate) async fn close(&self) {
        if let Some(pool) = &self.pool {
            pool.close().await;
        }
    }
}

/// What a program may reach: what the manifest grants, and what the command line does.
pub(crate) fn permissions(project: &Project, given: &PermissionArguments) -> Permissions {
    let said = project.manifest.as_ref();
    let granted = said.map(|it| it.permissions.clone()).unwrap_or_default();
    let from_here = |name: &String| below(&project.folder, name);
    Permissions {
        granted_by: GrantedBy::default(),
        fs: with(granted_by(&granted.fs, from_here), &given.allow_fs),
        net: with(granted_by(&granted.http, String::clone), &given.allow_net),
        env: with(granted_by(&granted.env, String::clone), &given.allow_env),
        process: granted.process || given.allow_process,
    }
}

/// A path of the manifest, from here.
fn below(folder: &Path, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

fn granted_by(grant: &manifest::Grant, meant: impl Fn(&String) -> String) -> Grant {
    match grant {
        manifest::Grant::None => Grant::Nothing,
        manifest::Grant::Only(names) => Grant::Only(names.iter().map(meant).collect()),
        manifest::Grant::All => Grant::Everything,
    }
}

/// What is granted already, and what flags add.
pub(crate) fn with(grant: Grant, flags: &[String]) -> Grant {
    if flags.iter().any(|it| it == EVERYTHING) {
        return Grant::Everything;
    }
    match grant {
        grant if flags.is_empty() => grant,
        Grant::Everything => Grant::Everything,
        Grant::Nothing => Grant::Only(flags.to_vec()),
        Grant::Only(mut names) => {
            names.extend(flags.iter().cloned());
            Grant::Only(names)
        }
    }
}

fn limits(said: LimitArguments) -> Limits {
    let usual = Limits::default();
    let number = |it: std::num::NonZeroU32| it.get() as usize;
    Limits {
        depth: said.max_depth.map_or(usual.depth, number),
        steps: said.max_steps.or(usual.steps),
        memory: said.max_memory.map_or(usual.memory, number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_add_to_what_is_granted_and_take_nothing_away() {
        let named = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let only = |names: &[&str]| Grant::Only(named(names));
        assert_eq!(with(Grant::Nothing, &[]), Grant::Nothing);
        assert_eq!(with(only(&["a"]), &[]), only(&["a"]));
        assert_eq!(with(only(&["a"]), &named(&["b"])), only(&["a", "b"]));
        assert_eq!(with(only(&["a"]), &named(&["b", "*"])), Grant::Everything);
        assert_eq!(with(Grant::Everything, &named(&["b"])), Grant::Everything);
    }
}
