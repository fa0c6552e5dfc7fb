/** Whether generated files are written instead of compared: `pnpm test:packages:update`. */
export const isUpdate = process.env['EXEC_SERVER_PACKAGES'] === 'update';
