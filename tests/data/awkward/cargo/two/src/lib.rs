#[cfg(test)]
mod tests {
    #[test]
    fn same() {}
}
