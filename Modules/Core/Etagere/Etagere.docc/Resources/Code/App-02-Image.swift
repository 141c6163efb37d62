import CacheUI
import SwiftUI

struct ProductImage: View {
  let url: URL

  var body: some View {
    CachedImage(url, label: Text("Product")) { image in
      image.resizable().scaledToFill()
    } placeholder: { model in
      ProgressView(value: model.progress?.fraction)
    }
  }
}
