extension SessionConfiguration.CookieStorage {
    /// Whether libpsl is in the process, as with Debian's libcurl. If so, no server can set a cookie for a public suffix, a domain under which
    /// different owners have names (`co.uk`; publicsuffix.org). Otherwise it can, unless the domain has no dot.
    public static var knowsPublicSuffixes: Bool { PublicSuffixList.isKnown }
}
