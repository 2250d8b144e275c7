extension String {
    /// Whether the text has a control character: CR and LF would end a line early, NUL a C string.
    package var hasControlCharacter: Bool { utf8.contains { $0 < 0x20 || $0 == 0x7F } }
}
