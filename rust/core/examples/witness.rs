use tokfold_core::{limits::Limits,network::*,syntax,vocabulary::Vocabulary,classes,recognizer};
use std::collections::BTreeMap;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let g = syntax::parse(&std::fs::read_to_string(&a[1]).unwrap(),"root",&Limits::default()).unwrap();
    let toks = std::fs::read(&a[2]).unwrap(); // u32 len prefixed
    let mut blob=vec![]; let mut off=vec![0u32]; let mut i=0; while i<toks.len() { let n=u32::from_le_bytes(toks[i..i+4].try_into().unwrap()) as usize; i+=4; blob.extend_from_slice(&toks[i..i+n]); i+=n; off.push(blob.len() as u32);}
    let v=Vocabulary::new(blob,off,&[],&[]).unwrap();
    let text=std::fs::read(&a[3]).unwrap();
    let (c,_)=classes::compile(&g,&v,&classes::ClassOptions::default(),&mut |_|true).unwrap();
    let net=Network::new(&g,&NetworkOptions{repeat_window:Some(130),..Default::default()}).unwrap();
    println!("classes {}", c.representatives.len());
    let vecs=recognizer::sample(&net,&v,&c.representatives,&[text],7,300,12);
    let mut groups: BTreeMap<&Vec<(usize,u32)>,Vec<u32>>=BTreeMap::new();
    for (v,&id) in vecs.iter().zip(&c.representatives) { groups.entry(v).or_default().push(id); }
    println!("distinct by real stacks {} (never seen valid: {})", groups.len(), groups.get(&vec![]).map_or(0,|g|g.len()));
    for (k,ids) in groups.iter().filter(|(k,g)|g.len()>1 && !k.is_empty()) { println!("{} {:?}", k.len(), ids.iter().map(|&i|String::from_utf8_lossy(v.bytes(i)).to_string()).collect::<Vec<_>>()); }
}
