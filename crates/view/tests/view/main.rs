//! The full-screen view as it looks: every screen at several sizes, of no, a small and a large job.

mod editing;
mod filtering;
mod hostile;
mod keys;
mod now;
mod recent;
mod replay;
mod replayed;
mod saving;
mod screens;
mod stacks;
mod timeline;
mod walking;
