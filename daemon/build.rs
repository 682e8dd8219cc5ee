//! Builds the wrapper, which is embedded in the binary.

fn main() -> Result<(), mpiprobe_bpf_build::BuildError> {
    let wrapper = mpiprobe_bpf_build::build_wrapper()?;
    println!("cargo:rustc-env=MPIPROBE_WRAPPER={}", wrapper.display());
    Ok(())
}
