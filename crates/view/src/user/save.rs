//! A saved view into the text of the configuration, of which everything else stays as it was, comments too.

use toml_edit::{DocumentMut, Item, Table, Value};

use super::SavedView;

/// What is wrong with the text is told.
pub(super) fn save(text: &str, name: &str, view: &SavedView) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let mut new_views = Table::new();
    // Only the tables in it have a heading.
    new_views.set_implicit(true);
    let views = document.entry("views").or_insert(Item::Table(new_views));
    let views = views.as_table_like_mut().ok_or("views is no table")?;
    let table = views.entry(name).or_insert(Item::Table(Table::new()));
    let table = table.as_table_like_mut().ok_or("this view is no table")?;
    let mut set = |key: &str, item: Option<Value>| {
        let Some(mut new) = item else {
            table.remove(key);
            return;
        };
        // The comment behind the old one.
        if let Some(old) = table.get(key).and_then(Item::as_value) {
            *new.decor_mut() = old.decor().clone();
        }
        table.insert(key, Item::Value(new));
    };
    set("filter", view.filter.as_ref().map(|filter| filter.text().into()));
    set("screen", view.screen.map(|screen| screen.name().into()));
    set("sort", view.sort.as_deref().map(Value::from));
    set("descending", view.descending.map(Value::from));
    set("span", view.span.map(|span| span.name().into()));
    set("measure", view.measure.map(|measure| measure.name().into()));
    Ok(document.to_string())
}
