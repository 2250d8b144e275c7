internal import CTLSReading

/// The limit for connections without progress while the calling thread is in libcurl; see `CTLSReading`.
package enum TLSReading {
    package static func begins() { netwatch_tls_reading_begins() }
    package static func ends() { netwatch_tls_reading_ends() }
    /// Called when libcurl has delivered data that it read.
    package static func noteProgress() { netwatch_tls_note_progress() }
}
