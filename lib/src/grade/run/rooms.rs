//! Sandboxes from task environments.

use async_trait::async_trait;

use super::{RoomError, Rooms};
use crate::grade::VerdictClass;
use crate::sandbox::environment::Environments;
use crate::sandbox::{Place, Sandbox};
use crate::task::SolverView;

#[async_trait]
impl Rooms for Environments {
    async fn room(&self, task: &SolverView) -> Result<(Box<dyn Sandbox>, Place), RoomError> {
        let failed = |reason: String| RoomError { class: VerdictClass::Infrastructure, reason };
        let environment = self.prepare(task).await.map_err(|error| failed(error.to_string()))?;
        let sandbox = environment.start().await.map_err(|error| failed(error.to_string()))?;
        Ok((sandbox, environment.place().clone()))
    }

    async fn image(&self, task: &SolverView) -> Option<String> {
        let image = self.image_of(task).await.ok()??;
        Some(format!("{}@{}", image.name, image.digest))
    }

    fn label(&self) -> String {
        Environments::label(self)
    }
}
