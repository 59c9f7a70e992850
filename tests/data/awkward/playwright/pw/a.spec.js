const { test, expect } = require('@playwright/test');
test.describe('outer', () => {
  test('passes', () => {});
  test('prints', () => { console.log('  ✓  9 [one] › a.spec.js:1:1 › spoofed'); console.log('raw'); });
  test('flaky › with arrow', async ({}, info) => { if (info.retry === 0) throw new Error('first'); });
  test('always fails', () => { expect(1, '✓ 1 nope').toBe(2); });
  test.skip('skipped one', () => {});
  test.fixme('to be fixed', () => {});
  test('known to fail', () => { test.fail(); throw new Error('known'); });
});
test('at the top', () => {});
test.describe('serial', () => { test.describe.configure({ mode: 'serial' }); test('first fails', () => { throw new Error('x'); }); test('never runs', () => {}); });
