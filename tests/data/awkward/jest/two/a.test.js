describe('outer', () => {
  test('passes', () => { process.stdout.write('raw print\n'); });
  test('only fails here', () => { expect({ a: 1 }).toEqual({ a: 2 }); });
});
