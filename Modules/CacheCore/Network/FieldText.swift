extension Substring.UTF8View {
  /// Returns the view without leading and trailing spaces and tabs (`OWS`, RFC 9110 §5.6.3).
  package func trimmingBlanks() -> Self {
    var view = self
    while let first = view.first, first == 0x20 || first == 0x09 { view = view.dropFirst() }
    while let last = view.last, last == 0x20 || last == 0x09 { view = view.dropLast() }
    return view
  }
}
