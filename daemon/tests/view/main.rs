//! The full-screen view as it looks: every screen at several sizes, of no, a small and a large job.

mod keys;
mod screens;
mod walking;
