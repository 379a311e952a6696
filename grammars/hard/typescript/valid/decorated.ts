/* Decorators, accessors, overloads, and names that are keywords elsewhere. */
@Component({ selector: "app", template: `<p>{{ title }}</p>` })
@sealed
export class AppComponent {
  @Input() title = "größe"
  @Output("changed") readonly changed = new EventEmitter<string | null>();
  static async get(type: string, of?: symbol): Promise<this>
  set value(v: number) { this.#v = v; }
  "quoted name"(): -1 | 1 { return 1 }
  [index: number]: string;
  constructor(@Inject(TOKEN) private readonly from: Service) { }
}

var as = 1, async = 2, type = { get: 1, set, async of() { return [] }, get x() { return 1 }, *gen() {}, [k]: 3, ...as }
function over(a: string): void
function over(a: number): void;
function over(a: any) { debugger }
let unique: unique symbol, f: new () => object, g: abstract new (...a: any[]) => A.B<C>["d"][], h: keyof typeof type;
let j: { a(): void, b: string }[] | [] | undefined, k: readonly (string | -1)[] = [] as any
export { as, type default as "string name" }; export * from "a"; export * as ns from "b"; export type { T } from "c";
const c = class Named<T> extends mixin(A)<T> {}, fn = function () { }, o = a?.b?.[0]?.(1)!.c;
if (a) b(); else if (c) { d() } else { }
x ||= y &&= z ??= w >>>= 1; a = b | c ^ d & e && f || g, 1 << 2 >> 3
for await (const { a, b: [c = 1, ...d] } of stream()) ;
export default (a: number, b) => ({ sum: a + b })
