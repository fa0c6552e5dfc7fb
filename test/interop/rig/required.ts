/** Where a run without the reference, or with a part of the tests, would prove nothing. */
export const required = process.env['EXEC_SERVER_INTEROP'] === 'required' || (process.env['CI'] ?? '') !== '';
