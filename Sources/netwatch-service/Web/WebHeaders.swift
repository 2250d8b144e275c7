/// The fields that every response has.
enum WebHeaders {
    /// The fields against scripts, frames and guesses of other origins. The page loads nothing from another origin.
    static let standard: [(name: String, value: String)] = [
        (
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; "
                + "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        ),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Frame-Options", "DENY"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
    ]

    /// The field value for documents, which are right for a moment only.
    static let noStore = "no-store"
    /// The field value for an asset whose URL contains its tag.
    static let immutable = "public, max-age=31536000, immutable"
    /// The field value for an asset whose URL does not change.
    static let revalidate = "no-cache"
}
