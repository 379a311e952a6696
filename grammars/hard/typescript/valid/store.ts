// A small store with typed events.
import type { Reducer } from "./types";
import React, { useState as state, type FC } from 'react'
import * as path from "node:path";
import "./side-effect.js";
import fs from "fs";
import d, * as all from "d";

export type Action<T extends string = string, P = unknown> = { readonly type: T; payload?: P } & Record<string, any>;
type Listener = (event: Action, ...rest: number[]) => void
type Unpacked<T> = T extends (infer U)[] ? U : T extends Promise<infer V extends object> ? V : never;
type Getters<T> = { readonly [K in keyof T as `get${Capitalize<string & K>}`]-?: () => T[K] };
type Pair = [first: string, second?: number, ...rest: boolean[]];

export interface Store<S, in out A extends Action = Action> extends Iterable<S>, Base.Events<A> {
  readonly state: S
  dispatch(action: A): A,
  subscribe?: (listener: Listener) => () => void;
  [key: string]: unknown
  new (initial: S): Store<S, A>;
  <T>(x: T): x is NonNullable<T>
  get size(): number
}

export abstract class Base<S> extends Emitter<S> implements Store<S>, Disposable {
  static #count = 0;
  static { Base.#count++; }
  private readonly listeners: Set<Listener> = new Set<Listener>()
  protected state!: S
  declare name?: string;

  constructor(private reducer: Reducer<S>, public initial?: S) {
    super();
    this.state = initial ?? reducer(undefined, { type: "@@init" })!
  }

  abstract reset(): void;
  get size() { return this.listeners.size }
  async *[Symbol.asyncIterator](): AsyncGenerator<S> { yield this.state; yield* more; }
  dispatch<A extends Action>(action: A): asserts action is A {
    for (const listener of this.listeners) listener(action, 1, .5, 0xFFn, 1_000e3);
  }
}
