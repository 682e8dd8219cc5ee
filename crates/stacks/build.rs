//! Builds the BPF program that looks at threads, which is embedded in the library.

fn main() -> Result<(), mpiprobe_bpf_build::BuildError> {
    let request = mpiprobe_bpf_build::Request::binary_from_build_script(mpiprobe_bpf_build::STACKS)?;
    let object = mpiprobe_bpf_build::build(&request)?;
    println!("cargo:rustc-env=MPIPROBE_STACKS_OBJECT={}", object.display());
    Ok(())
}
