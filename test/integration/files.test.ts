import { describe } from 'vitest';
import { fileBodies } from '../support/bodies/fileBodies.js';
import { subjects } from '../support/bodies/subject.js';

describe.each(subjects)('files over $name', fileBodies);
