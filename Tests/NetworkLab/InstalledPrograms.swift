extension Programs {
    /// True if a program of this name is in PATH.
    public static func isInstalled(_ name: String) -> Bool {
        (try? locate(name)) != nil
    }
}
