//! Reading of a stack file. All layers are built once, so that a wrong key is found before a run.

use crate::build::PreparedRun;
use crate::config::{Stack, digest};
use crate::schema;
use crate::workload::no_workload;
use crate::workloads::Workloads;
use crate::{Overrides, StackError};
use fullstroke_host::elevator::Trial;
use fullstroke_opportunity as opportunity;
use fullstroke_volume::Like;
use serde_json::{Value, json};
use std::path::Path;

impl Stack {
    /// Reads and checks a stack file.
    ///
    /// # Errors
    /// Names the file, line and key of the error, and the most similar known name.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Stack, StackError> {
        let default = match overrides.ideal_arrays {
            true => Like::Ideal,
            false => Like::Md,
        };
        let stack = Stack::read(path, overrides, default)?;
        // Built once and dropped, so that a wrong key is an error before the run. Aging of file
        // systems is left out, because aging takes long.
        stack.layers(false)?;
        match &stack.workloads {
            Workloads::Clients if stack.hosts.is_none() => {
                return Err(stack.document.error(no_workload().below("workload")));
            }
            // A trace is opened only at the run.
            Workloads::One(one) if one.trace_file().is_some() => {}
            _ => _ = PreparedRun::new(&stack, false)?,
        }
        Ok(stack)
    }

    /// Reads and checks a stack file for clients. The file needs no workload, because requests come
    /// from clients.
    ///
    /// # Errors
    /// As for [`load`](Stack::load).
    pub fn load_for_clients(path: &Path, overrides: &Overrides) -> Result<Stack, StackError> {
        // The bytes of a served volume were placed by these defaults, and the plans of the store
        // are those of the ideal planner.
        let stack = Stack::read(path, overrides, Like::Ideal)?;
        stack.layers_for_clients()?;
        Ok(stack)
    }

    /// Replaces the host's elevator by an elevator from outside: the elevator above the volume.
    /// Several hosts share this elevator.
    ///
    /// # Errors
    /// If there is no elevator, or if the new elevator refuses its place.
    pub fn with_elevator(mut self, trial: Trial) -> Result<Stack, StackError> {
        // A trial has no text in the file, so its name stands for the trial.
        let digest = digest(&json!({ "stack": self.digest, "elevator": trial.name() }));
        let (layer, place) = match &mut self.hosts {
            Some(hosts) => (hosts.shared_layer_mut(), "shared"),
            None => (&mut self.host, "host"),
        };
        let taken = layer.try_out(trial);
        taken.map_err(|error| self.document.error(error.below(place)))?;
        self.digest = digest;
        self.layers(false)?;
        Ok(self)
    }

    /// Adds an opportunity from outside. There is no check that a layer reacts to its signals.
    ///
    /// # Errors
    /// If the number of opportunities is at its limit, or if the opportunity refuses its place.
    pub fn with_opportunity(mut self, trial: opportunity::Trial) -> Result<Stack, StackError> {
        self.digest = digest(&json!({ "stack": self.digest, "opportunity": trial.name() }));
        self.opportunities
            .try_out(trial)
            .map_err(|error| self.document.error(error))?;
        self.layers(false)?;
        Ok(self)
    }

    /// Returns the JSON schema of stack files, for editors.
    pub fn schema() -> Value {
        schema::stack()
    }

    /// Builds fresh layers and sources at time 0.
    ///
    /// # Errors
    /// If a trace cannot be opened.
    pub fn build(&self) -> Result<PreparedRun, StackError> {
        PreparedRun::new(self, true)
    }
}
