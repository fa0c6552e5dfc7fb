/** Building blocks shared by the schemas. */
import { z } from 'zod';

/** A non-negative integer. The wire allows 64 bits; values over 2^53 arrive rounded, which only durations and limits meet. */
export const u64 = z.number().min(0).refine(Number.isInteger, { error: 'not an integer' }).meta({ type: 'integer' });
export const flag = z.boolean();
/** Standard base64 with padding; decoded by the handler, which names the faulty position. */
export const base64 = z.string();
export const text = z.string();
