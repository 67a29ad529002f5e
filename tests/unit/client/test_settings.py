"""The client's settings: address, key and project."""

import pytest

from crewyard.settings import Settings, SettingsError, config_path, resolve

URL, KEY = "https://crews.example.org", "crw_a_key"


@pytest.fixture
def file(tmp_path):
    config_file = tmp_path / "config.toml"
    config_file.write_text(f'url = "{URL}/"\napi_key = "{KEY}"\nproject = "demo"\n')
    return {"CREWYARD_CONFIG": str(config_file)}


def nowhere(tmp_path):
    return {"CREWYARD_CONFIG": str(tmp_path / "none")}


def test_arguments_go_before_the_environment_and_that_before_the_file(file):
    assert resolve(environment=file) == Settings(URL, KEY, "demo")
    environment = {**file, "CREWYARD_API_KEY": "other", "CREWYARD_PROJECT": "two"}
    assert resolve(environment=environment) == Settings(URL, "other", "two")
    assert resolve(api_key="third", project="three", environment=environment) == Settings(
        URL, "third", "three"
    )


def test_the_files_key_is_not_sent_to_another_address(file):
    with pytest.raises(SettingsError, match="no API key for https://elsewhere"):
        resolve(environment={**file, "CREWYARD_URL": "https://elsewhere.example.org"})


@pytest.mark.parametrize("address", [f"{URL}/v1", f"{URL}/v1/", f"{URL}//"])
def test_the_address_of_the_api_is_that_of_the_service(tmp_path, file, address):
    assert resolve(environment={**file, "CREWYARD_URL": address}) == Settings(URL, KEY, "demo")
    (tmp_path / "config.toml").write_text(f'url = "{address}"\napi_key = "{KEY}"\n')
    assert resolve(environment=file) == Settings(URL, KEY)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "CREWYARD_URL"),
        ({"CREWYARD_URL": "crews.example.org"}, "https://"),
        ({"CREWYARD_URL": "http://"}, "is not a URL"),
        ({"CREWYARD_URL": "https://host:99999"}, "is not a URL"),
        ({"CREWYARD_URL": "https://[::1"}, "is not a URL"),
        ({"CREWYARD_URL": "https://host/?a=b"}, "is not a URL"),
        ({"CREWYARD_URL": "https://10.0.0.256"}, "is not a URL"),
        ({"CREWYARD_URL": "https://xn--a"}, "is not a URL"),
        ({"CREWYARD_URL": "https://me:hunter2@host"}, "contains a user name or password"),
        ({"CREWYARD_URL": "https://me:hunter2@host:80a"}, "contains a user name or password"),
        ({"CREWYARD_URL": "https://me:h/unter2@host"}, "contains a user name or password"),
        ({"CREWYARD_URL": "me:hunter2@host"}, "contains a user name or password"),
        ({"CREWYARD_URL": URL}, "CREWYARD_API_KEY"),
        ({"CREWYARD_URL": URL, "CREWYARD_API_KEY": "a b"}, "whitespace"),
        ({"CREWYARD_URL": URL, "CREWYARD_API_KEY": "a\n"}, "whitespace"),
    ],
)
def test_an_error_names_what_is_missing_or_wrong_and_the_next_step(tmp_path, variables, message):
    with pytest.raises(SettingsError, match=message) as raised:
        resolve(environment={**nowhere(tmp_path), **variables})
    assert "unter2" not in str(raised.value)


@pytest.mark.parametrize("text", ["url = ", "url = 1", "\xff"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, text):
    config_file = tmp_path / "config.toml"
    config_file.write_bytes(text.encode("latin-1"))
    with pytest.raises(SettingsError, match=r"config\.toml"):
        resolve(environment={"CREWYARD_CONFIG": str(config_file)})


def test_an_unreadable_home_does_not_matter_if_address_and_key_are_given(tmp_path):
    (tmp_path / "file").write_text("")
    environment = {"CREWYARD_CONFIG": str(tmp_path / "file" / "config.toml"), "CREWYARD_URL": URL}
    with pytest.raises(SettingsError, match="cannot be read"):
        resolve(environment=environment)
    assert resolve(environment={**environment, "CREWYARD_API_KEY": KEY}) == Settings(URL, KEY)


def test_a_user_without_a_home_has_no_file(monkeypatch):
    monkeypatch.setattr("os.path.expanduser", lambda text: text)
    assert resolve(environment={"CREWYARD_URL": URL, "CREWYARD_API_KEY": KEY}) == Settings(URL, KEY)


def test_a_key_is_not_shown():
    assert KEY not in repr(Settings(URL, KEY))


def test_the_path_of_the_file(tmp_path):
    assert config_path({"XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "crewyard" / "config.toml"
