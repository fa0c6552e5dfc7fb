/** How recorded conversations are held that are not held like the others. */

/** Options without which a file is about another way to serve. */
export const serverArgs: Readonly<Record<string, readonly string[]>> = {
  // One request at a time is what the reference does unless told otherwise.
  '110-inline-dispatch': ['--concurrent-requests', '1'],
};

/** Files that take more than half a minute: for the full count alone. */
export const slow: readonly string[] = ['074-close-frame-detaches', '075-resume-expired'];
