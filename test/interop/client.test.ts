/** Our client on the reference: the bodies of the integration tests. */
import { describe, inject } from 'vitest';
import { fileBodies } from '../support/bodies/fileBodies.js';
import { httpBodies } from '../support/bodies/httpBodies.js';
import { processBodies } from '../support/bodies/processBodies.js';
import { surfaceBodies } from '../support/bodies/surfaceBodies.js';
import { referenceSubjects } from './rig/joinReference.js';

describe.skipIf(inject('referenceBinary') === null).each(referenceSubjects)(
  'our client on the reference over $name',
  (subject) => {
    describe('processes', () => processBodies(subject));
    describe('callers', () => surfaceBodies(subject));
    describe('files', () => fileBodies(subject));
    describe('http', () => httpBodies(subject));
  },
);
