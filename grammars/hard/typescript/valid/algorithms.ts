const enum Direction { Up = 1, Down = Up << 1, "left", }
declare global { interface Window { app: typeof import("./app").default } }
declare module "untyped" { export function load(name: string): Promise<void>; }
namespace Geometry.Flat {
  export const origin = { x: 0, y: 0 } as const;
}

function* fibonacci(limit: number = Infinity): Generator<number, void, unknown> {
  let [a, b] = [0, 1], count = 0;
  while (count++ < limit) { yield a; [a, b] = [b, a + b] }
}

async function retry<T>(task: () => Promise<T>, { times = 3, delay: ms, ...rest }: Options = {}): Promise<T> {
  for (let i = 0; ; i += 1) {
    try {
      return await task();
    } catch (error: unknown) {
      if (i >= times || !(error instanceof Error)) throw error
      else await sleep(ms * 2 ** i);
    } finally { done?.(); }
  }
}

const compare = <T,>(a: T, b: T): number => a < b ? -1 : a > b ? 1 : 0;
const twice = async x => (await x) * - -2 + +3 - -4;
export default function main(this: Window, argv: readonly string[]): argv is string[] {
  const parsed = /^--([a-z]+)(?:=(.*))?$/giu.exec(argv[0]) ?? [], re = /[/\]]*\//
  switch (parsed?.[1]) {
    case "help": case 'h':
      console.log(`usage: ${argv.map((a, i) => `${i}:${a}`).join(", ")} costs $5 \``);
      break
    default: do { x-- } while (x > 0)
  }
  for (var key in parsed) if (key in rest) continue; else delete rest[key];
  let y = typeof x === "undefined" ? void 0 : x satisfies number;
  tag`a${1}b`; new Map<string, number[]>([["a", [1, , 2]], ...entries])
}
