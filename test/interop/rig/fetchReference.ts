/** Runs once before these tests: gets the reference's program, or says why they are skipped. */
import type { TestProject } from 'vitest/node';
import { findReference } from '../../../bench/src/reference.mjs';
import { required } from './required.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Path of the reference's program; null where it is not to be had. */
    referenceBinary: string | null;
  }
}

export default async function setup(project: TestProject): Promise<void> {
  project.provide('referenceBinary', await binaryOrNull());
}

async function binaryOrNull(): Promise<string | null> {
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  try {
    const { binary } = await findReference(say);
    return binary;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    if (required) throw new Error(`the reference is required here: ${why}`, { cause: error });
    say(`interoperability tests are SKIPPED, since the reference is not to be had: ${why}`);
    return null;
  }
}
