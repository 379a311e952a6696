let a = 1
let b = 2 // no semicolons
let c = (d: Map<string, Array<Set<number>>>): void => {}
a = b
++c
const s = "\u{1F600}\x41\0\'" + 'it\'s' + "漢字 😀" + `line
two ${`${a}` + `}`} $ {}`
let { x, y: { z = 1 } = {}, ...others } = a, [first, , third = 3, ...tail] = list;
({ x, y } = point); [p, q] = [q, p]
interface A<T = string> { }
type B = (typeof a)["x"] | typeof a.b.c<string> | import("m").N<1> | `a${string}b` | unique symbol
type D = { -readonly [P in K]+?: T[P]; } | { [P in K]: 1 } | { f?(x?: number): void }
a < b, c > (d), e<f>(g)
x = y as unknown as Z[], w = v! / 2 / u
async () => { await p; for (let i = 0, n = 1; i < n; i++) { } }
declare const VERSION: string, other: any
abstract class E { abstract f(): void; protected abstract readonly x: number; }
