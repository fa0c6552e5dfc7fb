/** The local disk on Node. Reached by a dynamic import alone, so that bundles for browsers do without it. */
import type { LocalDisk } from '../transfer/localDisk.js';
import { behindLink, openSource } from './localSource.js';
import { createTarget } from './localTarget.js';
import { isTaken, makeFolder, makeFolders, makeLink, settleFolder } from './localFolder.js';
import { absolutePath, kindOf, treeOf } from './localTree.js';

export const disk: LocalDisk = {
  absolutePath,
  behindLink,
  createTarget,
  isTaken,
  kindOf,
  makeFolder,
  makeFolders,
  makeLink,
  openSource,
  settleFolder,
  treeOf,
};
