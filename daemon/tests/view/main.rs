//! The full-screen view as it looks: every screen at several sizes, of no, a small and a large job.

mod hostile;
mod picture;
mod replay;
mod replayed;
mod screens;
mod walking;
