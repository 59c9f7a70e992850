test('still written', () => { expect('x').toMatchSnapshot(); });
