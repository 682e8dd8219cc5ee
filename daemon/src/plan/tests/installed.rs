use super::super::*;
#[test]
fn scratch() {
    for path in ["/usr/lib/x86_64-linux-gnu/libmpi.so.40", "/usr/lib/x86_64-linux-gnu/libmpich.so.12"] {
        let bytes = read_elf_file(&std::fs::File::open(path).unwrap()).unwrap();
        let t = std::time::Instant::now();
        let lib = Library::parse(&bytes).unwrap();
        let role = lib.mpi_role();
        println!("{path} {:?} {:?} {:?} {:?}", lib.build_id(), lib.soname(), lib.is_stripped(), role);
        println!("parse {:?}", t.elapsed());
        let imp = Implementation::of(&lib);
        println!("{imp} {:?} {:?}", imp, t.elapsed());
        for c_only in [false, true] {
            let p = plan(&lib, |n| {
                let s = n.strip_prefix("P").unwrap_or(n);
                let ok = s.starts_with("MPI_") && (!c_only || s.as_bytes()[5..].iter().any(u8::is_ascii_lowercase));
                ok.then_some(())
            })
            .unwrap();
            println!("{} {:?}", p.census(), t.elapsed());
            for s in &p.census().slow {
                println!("   {} {}", s.name, s.reason);
            }
            for s in &p.rejected {
                println!("   {} {}", s.name, s.reason);
            }
            println!(
                "re {:?}",
                p.functions.iter().filter(|f| f.site.reentered).map(|f| f.function.name()).collect::<Vec<_>>()
            );
            let mut by = std::collections::BTreeMap::new();
            for f in &p.functions {
                if let SiteKind::Moved { by: b } = f.site.kind {
                    *by.entry(b).or_insert(0) += 1;
                }
            }
            println!("{by:?}");
        }
    }
}
