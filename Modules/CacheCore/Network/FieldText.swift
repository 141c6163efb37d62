extension Substring.UTF8View {
  /// Returns the view without leading and trailing spaces and tabs (`OWS`, RFC 9110 §5.6.3).
  package func trimmingBlanks() -> Self {
    var view = self
    while let first = view.first, first == 0x20 || first == 0x09 { view = view.dropFirst() }
    while let last = view.last, last == 0x20 || last == 0x09 { view = view.dropLast() }
    return view
  }
}

extension Int64 {
  /// Parses a number that consists of decimal digits only. `Int64("+1")` is a number, but not a length or a position in HTTP.
  @inlinable
  package init?(digits text: some StringProtocol) {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    self.init(text)
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Returns the bytes without leading and trailing spaces and tabs (`OWS`, RFC 9110 §5.6.3).
  @inlinable
  package func trimmingBlanks() -> Self {
    var (start, end) = (0, count)
    while start < end, self[start] == 0x20 || self[start] == 0x09 { start += 1 }
    while start < end, self[end - 1] == 0x20 || self[end - 1] == 0x09 { end -= 1 }
    return Self(rebasing: self[start..<end])
  }
}
