//! Builds the BPF programs and the wrapper; both are embedded in the binary.

fn main() -> Result<(), mpiprobe_bpf_build::BuildError> {
    let object = mpiprobe_bpf_build::build(&mpiprobe_bpf_build::Request::from_build_script()?)?;
    println!("cargo:rustc-env=MPIPROBE_BPF_OBJECT={}", object.display());
    let wrapper = mpiprobe_bpf_build::build_wrapper()?;
    println!("cargo:rustc-env=MPIPROBE_WRAPPER={}", wrapper.display());
    Ok(())
}
