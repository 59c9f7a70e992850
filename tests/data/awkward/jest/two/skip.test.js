test.skip('all skipped', () => {});
