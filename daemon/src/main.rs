fn main() {
    let e = mpiprobe::attach::climb(&Default::default(), None);
    println!("{e:#?}");
    for r in mpiprobe::attach::Rung::ALL {
        let e = mpiprobe::attach::climb(&Default::default(), Some(r));
        match e {
            Ok(e) => println!("{r}: {:?} empty {:?} missed {:?}", e.calibration, e.empty_probe_ns(), e.missed_hits()),
            Err(e) => println!("{r}: {e}"),
        }
    }
}
